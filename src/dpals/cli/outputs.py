"""Files and folders that commands write: checked before any work, and written whole or not at all."""

from pathlib import Path

import click

from dpals.system.terminal import echo

TABLES = (".csv", ".parquet")


def writable(_ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """As a callback of click: the path of a file to write, or an error that says why it cannot be written."""
    if path is None:
        return None
    import os

    folder = path.parent
    if not folder.is_dir():
        problem = "is a file, not a folder" if folder.exists() else "does not exist: create it first"
        raise OSError(f"{path} cannot be written: {folder} {problem}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OSError(f"{path} cannot be written: you may not write to {folder}. Choose another folder")
    return path


def check_ending(path: Path | None, endings: tuple[str, ...], where: str) -> None:
    """Refuse a file whose name does not end in one of the endings; ``where`` it was given is in the message."""
    if path is not None and path.suffix not in endings:
        raise click.BadParameter(f"{path.name!r} must end in {' or '.join(endings)}", param_hint=where)


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be created or written to."""
    from tempfile import TemporaryFile

    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not existing.is_dir():
        raise OSError(f"{folder} cannot be written: {existing} is a file, not a folder")
    with TemporaryFile(dir=existing):
        pass


def check_model_folder(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that holds a model, or cannot be written to."""
    if (folder / "model.json").exists() and not overwrite:
        raise click.UsageError(
            f"{folder} holds a model, for which budget was spent: choose another folder, or pass --overwrite"
        )
    check_folder(folder)


def text_to(output: Path | None, text: str) -> None:
    """Write a text to a file, or to standard output."""
    if output is None:
        echo(text)
        return
    from dpals.system.files import write_whole

    write_whole(output, f"{text}\n".encode())
