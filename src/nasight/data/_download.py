"""Downloads that continue where they stopped, are checked, and only then take their place."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from nasight.data._files import find, read_named
from nasight.data._registry import registered_names
from nasight.data._sources import SOURCES, DataSource, data_folder, unknown_name
from nasight.errors import RequestError, RunError

CHUNK = 1 << 18
TIMEOUT = 30.0
Progress = Callable[[str, int, int | None], None]
"""Called with the file, the bytes here, and the bytes in all where the server says so."""


def get(
    name: str,
    folder: str | Path | None = None,
    *,
    mirror: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """The folder of a named data set, after downloading what is missing.

    A set that is here and whole is left as it is. An interrupted download leaves FILE.part and continues there.

    Parameters
    ----------
    name : fashion-mnist, mnist, cifar-10 or cifar-100.
    folder : the data folder; $NASIGHT_DATA or the user's cache by default.
    mirror : an http or https address that holds the same files under the same names; the owner's by default.
    progress : called with the file, the bytes that are here, and the bytes in all where the server says so.
    """
    if name in registered_names():
        raise RequestError(f"data set {name!r} was registered and needs no download")
    if name not in SOURCES:
        raise unknown_name(name, registered_names())
    source = SOURCES[name]
    if source.downloads is None and source.files:
        raise RequestError(
            f"data set {name!r} cannot be downloaded without an account; its owner has it at {source.address}: put "
            f"{source.files[0]} to {source.files[-1]} into {data_folder(folder) / source.folder}"
        )
    if source.downloads is None:
        raise RequestError(f"data set {name!r} comes with scikit-learn and needs no download")
    address = source.address if mirror is None else mirror.rstrip("/") + "/"
    if urlsplit(address).scheme not in ("http", "https"):
        raise RequestError(f"a mirror must be an http or https address, got {mirror!r}")
    root = data_folder(folder)
    place = root / source.folder
    if _whole(source, root):
        return place
    place.mkdir(parents=True, exist_ok=True)
    for file, md5 in source.downloads.items():
        target = (root if file.endswith(".tar.gz") else place) / file
        here = target.is_file() and _md5(target) == md5
        if not here:
            _download(address + file, target, md5, progress)
        if file.endswith(".tar.gz"):
            _unpack(target, place, source.files)
            if not here:
                target.unlink()
    return place


def _whole(source: DataSource, root: Path) -> bool:
    """Whether the data folder itself holds the set, and it can be read."""
    if find(source, root) != root / source.folder:
        return False
    try:
        read_named(source, root / source.folder)
    except RequestError:
        return False
    return True


def _download(url: str, target: Path, md5: str, progress: Progress | None) -> None:
    part = target.with_name(target.name + ".part")
    _fetch(url, part, progress)
    if _md5(part) != md5:
        part.unlink()
        raise RunError(
            f"what {url} sent does not have the published checksum {md5}; {part} was removed and nothing else changed"
        )
    part.replace(target)


def _fetch(url: str, part: Path, progress: Progress | None) -> None:
    """All bytes of the address in `part`, of which those that are there are not asked for again."""
    have = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"User-Agent": "nasight", **({"Range": f"bytes={have}-"} if have else {})})
    try:
        response: HTTPResponse = urlopen(request, timeout=TIMEOUT)
    except HTTPError as error:
        error.close()
        if error.code == 416:  # nothing after what we have: the checksum decides
            return
        raise RunError(f"{url} answered {error.code} {error.reason}; {_kept(part)}") from error
    except (URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        raise RunError(f"{url} cannot be reached ({reason}); {_kept(part)}") from error
    with response:
        if response.status != 206:  # the server sends all of it, whatever was asked
            have = 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length is not None else None
        with part.open("ab" if have else "wb") as file:
            have = _copy(response, file, have, total, part, progress)
            os.fsync(file.fileno())
    if total is not None and have < total:
        raise RunError(f"{url} broke off after {have} of {total} bytes; {_kept(part)}")


def _copy(
    response: HTTPResponse, file: BinaryIO, have: int, total: int | None, part: Path, progress: Progress | None
) -> int:
    while True:
        try:
            chunk = response.read(CHUNK)
        except (HTTPException, OSError) as error:
            file.flush()
            raise RunError(f"{response.url} broke off after {have} bytes ({error}); {_kept(part)}") from error
        if not chunk:
            return have
        file.write(chunk)
        have += len(chunk)
        if progress is not None:
            progress(part.name.removesuffix(".part"), have, total)


def _kept(part: Path) -> str:
    size = part.stat().st_size if part.exists() else 0
    return f"{size} bytes are kept in {part}, and the same command continues there" if size else "nothing was changed"


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _unpack(archive: Path, place: Path, files: tuple[str, ...]) -> None:
    """The expected files of an archive, each moved to its place when all are out; other members are ignored."""
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-") as scratch:
        try:
            with tarfile.open(archive, "r:gz") as tar:
                for file in files:
                    member = tar.getmember(f"{place.name}/{file}")
                    content = tar.extractfile(member) if member.isreg() else None
                    if content is None:
                        raise RunError(f"{archive} holds {member.name} as something that is not a file")
                    with content, (Path(scratch) / file).open("wb") as out:
                        shutil.copyfileobj(content, out)
        except (tarfile.TarError, KeyError, EOFError) as error:
            raise RunError(f"{archive} cannot be unpacked ({error})") from error
        for file in files:
            (Path(scratch) / file).replace(place / file)
