import pytest

from command import run

READ_DATA = ("search", "train", "explain", "score", "kernel", "select", "cell", "export", "data get", "table query")


@pytest.mark.parametrize("command", [*READ_DATA, "table race", "trust ranking"])
def test_every_command_that_reads_data_takes_its_folder_by_the_same_name(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*command.split(), "--help") == 0
    assert "--data-folder" in capsys.readouterr().out
