//! Exit codes: 0 good, 1 findings, 2 usage or unreadable input, 3 not supported or unknown, 4 refused for safety; of a
//! program that is run for the user, its own.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::ColorChoice;
use clap::error::ErrorKind;
use emmc_port::SourceError;

use crate::output::Output;
use crate::save::Refused;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Good,
    Findings,
    Unusable,
    Unknown,
    Refused,
    /// A monitoring plugin's code: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
    Nagios(u8),
    /// The exit status of the script of `lab run`, or of the command of `trace record`.
    #[cfg(any(feature = "serve", feature = "trace"))]
    Script(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Good => 0,
            Exit::Findings => 1,
            Exit::Unusable => 2,
            Exit::Unknown => 3,
            Exit::Refused => 4,
            Exit::Nagios(code) => code,
            #[cfg(any(feature = "serve", feature = "trace"))]
            Exit::Script(status) => status,
        })
    }
}

/// Prints the message of clap in one line, and where to read more in another; a monitoring system reads a usage error
/// of `check` as UNKNOWN.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // Not `env::args`, which panics at arguments that are not UTF-8.
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let is_json = arguments.iter().any(|argument| argument == "--json" || argument == "-J");
    let mut output = Output::new(is_json, ColorChoice::Never);
    if error.exit_code() == 0 {
        return match output.help(error) {
            Ok(()) => Exit::Good.into(),
            Err(error) => report(&error, &output),
        };
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // If standard error is closed, nobody reads the help.
        let _ = error.print();
        return Exit::Unusable.into();
    }
    let text = error.render().to_string();
    let message = first_paragraph(&text);
    if verb(&arguments).is_some_and(|verb| verb == "check") {
        // A monitoring system shows standard output.
        return crate::commands::check::usage_error(&message, &mut output).into();
    }
    output.error(&message);
    if !is_json {
        output.hint(&hint(&text, &arguments));
    }
    Exit::Unusable.into()
}

/// Where to read more: clap's tip, if it has one, and the help of the command.
fn hint(text: &str, arguments: &[OsString]) -> String {
    let mut command = crate::cli::command();
    let mut path = "emmclab".to_owned();
    for word in arguments {
        if let Some(inside) = command.find_subcommand(word).cloned() {
            path = format!("{path} {}", inside.get_name());
            command = inside;
        }
    }
    let help = format!("see `{path} --help`");
    match text.lines().find_map(|line| line.trim().strip_prefix("tip: ")) {
        Some(tip) => format!("{tip}; {help}"),
        None => help,
    }
}

/// The first argument that is neither an option nor the value of `--color`.
fn verb(arguments: &[OsString]) -> Option<&OsString> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--color" {
            rest.next();
        } else if !argument.to_string_lossy().starts_with('-') {
            return Some(argument);
        }
    }
    None
}

/// The error of clap without the usage below it.
fn first_paragraph(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let text = lines.join(" ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

/// An error and its causes; a cause that the message before it already ends with is left out.
fn one_line(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |line, cause| match line.as_str() {
        "" => cause,
        so_far if so_far.ends_with(&cause) => line,
        so_far => format!("{so_far}: {cause}"),
    })
}

/// Prints one line, or with `--json` one object, to standard error and returns the exit code.
pub(crate) fn report(error: &anyhow::Error, output: &Output) -> ExitCode {
    if let Some(io) = error.downcast_ref::<std::io::Error>() {
        // The reader closed the pipe, as in `emmclab show x | head`: that is no error.
        if io.kind() == std::io::ErrorKind::BrokenPipe {
            return Exit::Good.into();
        }
    }
    output.error(&one_line(error));
    if error.is::<Refused>() {
        return Exit::Refused.into();
    }
    #[cfg(feature = "trace")]
    if let Some(error) = error.downcast_ref::<crate::commands::trace::CannotRun>() {
        return Exit::Script(error.code()).into();
    }
    #[cfg(feature = "serve")]
    if let Some(emmc_serve::nbd::TlsError::NotBuilt) = error.downcast_ref() {
        return Exit::Unknown.into();
    }
    match error.downcast_ref::<SourceError>() {
        Some(SourceError::Unsupported { .. }) => Exit::Unknown.into(),
        _ => Exit::Unusable.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_the_command_and_the_tip() {
        let hint = |text: &str, arguments: &str| {
            hint(text, &arguments.split(' ').map(OsString::from).collect::<Vec<OsString>>())
        };
        let text = "error: x\n\n  tip: a similar argument exists: '--all'\n";
        assert_eq!(
            hint(text, "--json plan hwpart x --al"),
            "a similar argument exists: '--all'; see `emmclab plan hwpart --help`"
        );
        assert_eq!(hint("error: invalid value\n", "bogus x"), "see `emmclab --help`");
    }

    #[test]
    fn a_cause_is_printed_once() {
        let cause = std::io::Error::other("no room");
        let error = anyhow::Error::new(cause).context("cannot listen: no room").context("serve");
        assert_eq!(one_line(&error), "serve: cannot listen: no room");
    }
}
