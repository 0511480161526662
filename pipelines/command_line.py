"""The command line that both jobs share: `--config`, `--set`, and Beam's own options, of which none may be unknown."""

import argparse
import sys
import typing
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.runner import PipelineRunner

from model_runtime.errors import ConfigError, SpeechError

EXIT_CONFIGURATION = 2
"""The exit code of a wrong configuration or command line."""

# These runners hand the options on to a job server, which knows more of them (such as --checkpointing_interval).
_JOB_SERVER_RUNNERS = ("portablerunner", "flinkrunner", "sparkrunner")


def report(error: SpeechError) -> int:
    """Says on stderr why a job does not run, and gives its exit code."""
    print(f"error: {error}", file=sys.stderr)
    return EXIT_CONFIGURATION if isinstance(error, ConfigError) else 1


class CommandLine(NamedTuple):
    """A parsed command line; beam_flags are what PipelineOptions is made of, switches those of the job that are on."""

    config: str | None
    overrides: list[str]
    beam_flags: list[str]
    switches: frozenset[str] = frozenset()


def parse_command_line(
    argv: Sequence[str] | None, program: str, description: str, switches: Mapping[str, str] | None = None
) -> CommandLine:
    """Splits the arguments into the product's and Beam's.

    Args:
        switches: name -> help of the flags without a value that this job has besides.

    Raises:
        ConfigError: a flag that neither knows (Beam itself would only warn), or an argument without a flag.
        SystemExit: as argparse does, 0 after --help and 2 for an argument without its value.
    """
    parser = _FlagFileParser(
        program,
        description=description,
        epilog="All other options are Beam's. @FILE stands for the options in FILE, one a line; # begins a comment.",
        allow_abbrev=False,
        fromfile_prefix_chars="@",
    )
    parser.add_argument("--config", metavar="FILE", help="YAML file; without one the defaults are taken")
    parser.add_argument(
        "--set",
        metavar="FIELD=VALUE",
        dest="overrides",
        action="append",
        default=[],
        help="overrides one field of the file, such as inference.batch_size=8; may be repeated",
    )
    for name, text in (switches or {}).items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    known, beam_flags = parser.parse_known_args(argv)
    check_beam_flags(beam_flags)
    on = frozenset(name for name in switches or {} if getattr(known, name))
    return CommandLine(known.config, known.overrides, beam_flags, on)


def check_beam_flags(flags: Sequence[str]) -> None:
    """Refuses what Beam does not know, unless a job server may know it (see pipelines.flink).

    Raises:
        ConfigError: names the flag.
    """
    unknown = unknown_flags(flags)
    if unknown and not is_portable(PipelineOptions(list(flags))):
        raise ConfigError(f"{unknown[0].partition('=')[0]} is no option: not of this command and not of Beam")


def unknown_flags(flags: Sequence[str]) -> list[str]:
    """Gives what Beam itself does not know; a value that stands behind its flag is not given.

    Raises:
        ConfigError: a flag that Beam knows has a value that it cannot have.
    """
    parser = _Parser("beam", add_help=False, allow_abbrev=False)
    classes = {str(options): options for options in PipelineOptions.__subclasses__()}
    for options in classes.values():
        options._add_argparse_args(parser)
    _, unknown = parser.parse_known_args(list(flags))
    return unknown


def is_portable(options: PipelineOptions) -> bool:
    """Says whether the runner hands the options on to a job server."""
    runner = (options.view_as(StandardOptions).runner or "").rpartition(".")[2].lower()
    return runner in _JOB_SERVER_RUNNERS


def flag_name(flag: str) -> str:
    """Gives the name of `--name`, `--name=value`."""
    return flag.partition("=")[0].lstrip("-")


def make_pipeline(options: PipelineOptions, runner: PipelineRunner | None = None) -> beam.Pipeline:
    """Gives an empty pipeline for a runner, or for the one that the options name.

    Raises:
        ConfigError: there is no such runner, or its options do not fit together.
    """
    try:
        return beam.Pipeline(runner, options)
    except ValueError as error:
        raise ConfigError(f"Beam refuses its options: {' '.join(str(error).split())}") from error


class _FlagFileParser(argparse.ArgumentParser):
    """Reads @FILE as one argument a line, without comments and blank lines."""

    def convert_arg_line_to_args(self, arg_line: str) -> list[str]:
        line = arg_line.strip()
        return [] if line.startswith("#") or not line else [line]


class _Parser(argparse.ArgumentParser):
    """Beam's option classes fill it; a bad value is an error of ours, not an exit."""

    def add_value_provider_argument(self, *names: str, **settings: object) -> None:
        settings.pop("type", None)
        self.add_argument(*names, **settings)  # type: ignore[arg-type]  # passed on as Beam wrote them

    def error(self, message: str) -> typing.NoReturn:
        raise ConfigError(message)
