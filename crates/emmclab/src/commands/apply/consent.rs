//! Consent to a plan: shows what is sent and lost, and asks for the card's serial number where it cannot be reverted.

use std::io::{BufRead, IsTerminal, Write};

use emmc_analysis::plan::{CardIdentity, Plan};
use emmc_port::{Consent, serial_text};
use emmc_report::visible;

use crate::cli::ApplyArgs;

/// Shows the plan, and asks if it has a step that cannot be reverted.
///
/// Errors: why the user did not agree.
pub(super) fn ask(plan: &Plan, card: &CardIdentity, args: &ApplyArgs, is_quiet: bool) -> Result<Consent, String> {
    if !is_quiet {
        show(plan, card, args);
    }
    if !plan.permanent {
        return Ok(Consent::REVERSIBLE);
    }
    let question = SerialQuestion {
        target: &args.target,
        card,
        given: args.permanent.as_deref(),
        what: "the plan has steps that cannot be reverted",
        lost: &plan.lost,
        is_quiet,
    };
    question.ask()
}

/// The question before what cannot be reverted.
pub(in crate::commands) struct SerialQuestion<'a> {
    pub(in crate::commands) target: &'a str,
    pub(in crate::commands) card: &'a CardIdentity,
    /// What `--permanent` says.
    pub(in crate::commands) given: Option<&'a str>,
    pub(in crate::commands) what: &'static str,
    pub(in crate::commands) lost: &'a [String],
    /// Print only the error, because a program reads JSON.
    pub(in crate::commands) is_quiet: bool,
}

impl SerialQuestion<'_> {
    /// Errors: why the user did not agree.
    pub(in crate::commands) fn ask(&self) -> Result<Consent, String> {
        let Self { target, card, what, .. } = self;
        let serial = card.serial.as_deref().and_then(|serial| u32::from_str_radix(serial.strip_prefix("0x")?, 16).ok());
        let Some(serial) = serial else {
            return Err(format!("{target}: its serial number cannot be read, which a one-time change needs"));
        };
        let given = match self.given {
            Some(given) => given.to_owned(),
            None if std::io::stdin().is_terminal() => typed(serial),
            None => {
                let how = format!("--permanent {}", serial_text(serial));
                // A program that reads JSON has not seen what is lost.
                let lost = if self.is_quiet { format!("; lost: {}", self.lost.join("; ")) } else { String::new() };
                return Err(format!(
                    "{target}: {what}, and there is no terminal to type the card's serial number at: use {how}; nothing \
                     was sent{lost}"
                ));
            }
        };
        Consent::permanent(&given, serial).map_err(|error| format!("{target}: {error}; nothing was sent"))
    }
}

fn show(plan: &Plan, card: &CardIdentity, args: &ApplyArgs) {
    let unknown = || "unknown".to_owned();
    let product = card.product.clone().unwrap_or_else(unknown);
    say(&format!("{}: {product}, serial number {}", args.target, card.serial.clone().unwrap_or_else(unknown)));
    for step in &plan.steps {
        say(&format!("  {}{}", step.text(), if step.is_permanent() { "  one-time" } else { "" }));
    }
    for lost in &plan.lost {
        say(&format!("  lost: {lost}"));
    }
    for warning in &plan.warnings {
        say(&format!("  warning: {}", warning.what));
    }
}

fn typed(serial: u32) -> String {
    // If standard error is closed, nobody reads the question.
    let _ = write!(
        std::io::stderr(),
        "This cannot be undone. Type the card's serial number, {}, to go on: ",
        serial_text(serial)
    );
    let mut line = String::new();
    // No input counts as no number.
    let _ = std::io::stdin().lock().read_line(&mut line);
    line
}

/// Prints a line to standard error.
pub(in crate::commands) fn say(line: &str) {
    // If standard error is closed, nobody reads it.
    let _ = writeln!(std::io::stderr(), "emmclab: {}", visible(line));
}
