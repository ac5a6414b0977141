//! Consent before anything is overwritten: shows what would be lost and the cost, and asks for confirmation.

use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Write};

use emmc_linux::usage::Occupied;
use emmc_report::visible;
use emmc_units::Bytes;
use emmc_workload::context::Context;
use emmc_workload::{Cost, Suite};

use super::demand::Demand;
use crate::cli::BenchArgs;
use crate::save::Refused;

/// What a writing suite will do.
pub(super) struct Intent<'a> {
    pub(super) suite: &'a dyn Suite,
    pub(super) cost: Cost,
    pub(super) occupied: &'a Occupied,
    pub(super) context: &'a Context,
    /// The target as the user named it.
    pub(super) called: &'a str,
    pub(super) is_device: bool,
    /// Print only the error, because a program reads JSON.
    pub(super) is_quiet: bool,
}

impl Intent<'_> {
    /// The text that the user must see before.
    fn told(&self, args: &BenchArgs) -> String {
        let Occupied { name, model, size_bytes, contents, .. } = self.occupied;
        // The text is printed line by line: a name must not add lines.
        let (name, called) = (visible(name), visible(self.called));
        let Cost { from_bytes, to_bytes, .. } = self.cost;
        let mut text = format!("{called}: {}", Bytes(*size_bytes).rounded());
        if let Some(model) = model {
            let _ = write!(text, ", {}", visible(model));
        }
        let range = format!("bytes {from_bytes} to {to_bytes} of {name}");
        let fate = match (self.suite.restores(), args.save_restore) {
            (true, _) => {
                "is overwritten in some places, which are saved before and restored; a power cut prevents that"
            }
            (false, true) => "is saved and restored",
            (false, false) => "is lost",
        };
        let _ = write!(text, "\n  the content of {range} {fate}");
        for line in contents {
            let _ = write!(text, "\n    {}", visible(line));
        }
        let demand = Demand {
            suite: self.suite.name(),
            cost: self.cost,
            time_most: self.suite.time_most(),
            beside_bytes: if args.save_restore { to_bytes - from_bytes } else { 0 },
            context: self.context,
            capacity_bytes: self.context.disk.as_ref().and_then(|disk| disk.size_bytes).unwrap_or(*size_bytes),
            cycles: None,
        };
        let _ = write!(text, "\n  {}", demand.text().replace('\n', "\n  "));
        if let Some(life) = &self.context.life_before {
            let [a, b] =
                [life.type_a, life.type_b].map(|value| value.map_or("?".into(), |value| format!("{value:#04x}")));
            let _ = write!(text, "; DEVICE_LIFE_TIME is {a} (A), {b} (B)");
        }
        text
    }

    /// Asks whether the suite may write to a target that nobody uses.
    ///
    /// Errors: [`Refused`] if the user did not confirm.
    pub(super) fn ask(&self, args: &BenchArgs) -> Result<(), Refused> {
        Question {
            told: self.told(args),
            without: match self.suite.name() {
                "probe" => "its content would be lost: --destroy allows that, without --write nothing is written",
                _ => "its content would be lost: --destroy allows that, --read-only measures only reads",
            },
            called: self.called,
            name: &self.occupied.name,
            is_device: self.is_device,
            is_quiet: self.is_quiet,
        }
        .ask(args)
    }
}

/// The question before content is overwritten.
pub(in crate::commands) struct Question<'a> {
    /// What the user must see before.
    pub(in crate::commands) told: String,
    /// What is said without --destroy.
    pub(in crate::commands) without: &'static str,
    /// The target as the user named it.
    pub(in crate::commands) called: &'a str,
    /// The name to be typed.
    pub(in crate::commands) name: &'a str,
    pub(in crate::commands) is_device: bool,
    /// Print only the error, because a program reads JSON.
    pub(in crate::commands) is_quiet: bool,
}

impl Question<'_> {
    /// Errors: [`Refused`] if the user did not confirm.
    pub(in crate::commands) fn ask(&self, args: &BenchArgs) -> Result<(), Refused> {
        let (path, name) = (self.called, self.name);
        if !self.is_quiet {
            say(&self.told);
        }
        if !args.destroy {
            let told = if self.is_quiet { format!("{}; ", self.told.replace("\n ", ";")) } else { String::new() };
            return Err(Refused(format!("{path}: {told}{}", self.without)));
        }
        // A file is clear from the command line; the names of two devices are easily confused.
        if !self.is_device && args.yes_i_mean.is_none() {
            return Ok(());
        }
        let answer = match &args.yes_i_mean {
            Some(answer) => answer.clone(),
            None if std::io::stdin().is_terminal() => typed(name),
            None => {
                let what = format!("{path}: no terminal to confirm the device's name at: use --yes-i-mean {name}");
                return Err(Refused(what));
            }
        };
        let meant = answer.trim() == name || answer.trim() == format!("/dev/{name}");
        if meant { Ok(()) } else { Err(Refused(format!("{path}: its name is {name}, not {:?}", answer.trim()))) }
    }
}

fn typed(name: &str) -> String {
    // If standard error is closed, nobody reads the question.
    let _ = write!(std::io::stderr(), "Type the device's name, {}, to go on: ", visible(name));
    let mut line = String::new();
    // No input counts as no name.
    let _ = std::io::stdin().lock().read_line(&mut line);
    line
}

/// Prints text to standard error, line by line.
pub(in crate::commands) fn say(text: &str) {
    for line in text.lines() {
        // If standard error is closed, nobody reads the text.
        let _ = writeln!(std::io::stderr(), "emmclab: {}", visible(line));
    }
}
