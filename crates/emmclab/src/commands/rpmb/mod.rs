//! `rpmb`: programs the key of a card's RPMB, reads its write counter, reads and writes its blocks.
//!
//! Every reply is checked, with the key also its MAC; without the key the report says that it is not authenticated.
//! Absent on purpose: keys as arguments, which every user of the machine could see.

#[cfg(feature = "sim")]
mod folder;
mod key;
mod key_file;
mod protect;
mod read;
mod report;
mod target;
mod write;

use emmc_analysis::plan::CardIdentity;
use emmc_port::rpmb::{RpmbError, RpmbKey, RpmbPort};
use emmc_regs::rpmb::{DATA_BYTES, RpmbResult};
use serde::Serialize;

use self::target::{Target, unable};
use crate::CommandResult;
use crate::cli::{RpmbCommand, RpmbCounterArgs};
use crate::commands::bench::consent::say;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.rpmb/1";

/// What `rpmb --json` prints.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RpmbDocument {
    /// `key`, `counter`, `read`, `write` or `protect`.
    action: &'static str,
    /// The target, as named.
    target: String,
    /// What identifies the card.
    card: Option<CardIdentity>,
    /// The size of its RPMB. Unit: blocks of `block_bytes`.
    size_blocks: u32,
    /// What an address counts. Unit: bytes.
    block_bytes: u32,
    /// Whether a key is programmed; absent if that is not known.
    has_key: Option<bool>,
    /// The write counter at the end, if known.
    counter: Option<u32>,
    /// Whether the replies have the MAC of the key; absent if nothing was read.
    authenticated: Option<bool>,
    /// The first block of a read or write.
    first_block: Option<u32>,
    /// Blocks of a read or write.
    count_blocks: Option<u32>,
    /// All blocks of the file before this one are in the RPMB, those before `--from` from an earlier run.
    written_blocks: Option<u32>,
    /// The first block that may be written or not, and the one behind the last. Unit: blocks of the RPMB.
    unsure_blocks: Option<[u32; 2]>,
    /// The state of secure write protection, as `protect` leaves it.
    protection: Option<protect::State>,
    /// How it ended: `complete`, `stopped` by a signal, `refused` by the card, `not authentic`: a reply was not
    /// believed, `lost`: the card does not answer.
    ended: &'static str,
    /// Why it ended early.
    reason: Option<String>,
    /// Where the blocks were saved.
    output: Option<String>,
    /// What to look at.
    warnings: Vec<String>,
    /// What to do next.
    next: Vec<String>,
}

impl RpmbDocument {
    fn new(action: &'static str, name: &str, target: &Target, warnings: Vec<String>) -> Self {
        Self {
            action,
            target: name.into(),
            card: Some(target.card.clone()),
            size_blocks: target.shape.blocks,
            block_bytes: DATA_BYTES as u32,
            ended: "complete",
            warnings,
            ..Self::default()
        }
    }

    /// It ended early.
    fn failed(&mut self, error: &RpmbError) {
        self.ended = match error {
            RpmbError::Result(_) => "refused",
            RpmbError::Port(_) | RpmbError::NotAgreed(_) => "lost",
            _ => "not authentic",
        };
        self.reason = Some(error.to_string());
    }
}

pub(crate) fn run(command: &RpmbCommand, output: &mut Output) -> CommandResult {
    // A program that reads JSON gets one object, also where it cannot be asked.
    let is_quiet = output.is_json() && !std::io::IsTerminal::is_terminal(&std::io::stdin());
    let document = match command {
        RpmbCommand::Key(args) => key::program(args, is_quiet)?,
        RpmbCommand::Counter(args) => counter(args)?,
        RpmbCommand::Read(args) => return read::run(args, output),
        RpmbCommand::Write(args) => write::write(args, is_quiet)?,
        RpmbCommand::Protect(args) => protect::run(args)?,
    };
    finish(&document, output)
}

/// Prints the document, and warnings on standard error as well, where a program reads only the results.
fn finish(document: &RpmbDocument, output: &mut Output) -> CommandResult {
    if output.is_json() {
        document.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    }
    output.print(SCHEMA, document, report::present)?;
    Ok(exit(document))
}

/// Of a card that does not answer nothing is known; what was stopped, refused or not authentic is a finding.
fn exit(document: &RpmbDocument) -> Exit {
    match document.ended {
        "complete" => Exit::Good,
        "lost" => Exit::Unknown,
        _ => Exit::Findings,
    }
}

/// A number that was never used before.
///
/// Errors: the kernel's.
fn nonce() -> anyhow::Result<[u8; 16]> {
    let mut nonce = [0; 16];
    let mut filled = 0;
    while filled < nonce.len() {
        filled += rustix::rand::getrandom(&mut nonce[filled..], rustix::rand::GetRandomFlags::empty())
            .map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    }
    Ok(nonce)
}

/// What the write counter says of a card.
enum State {
    /// No key is programmed, so that there is no counter.
    NoKey,
    /// The counter.
    Counter(u32),
}

/// Reads the write counter, which every card answers.
fn state(port: &mut dyn RpmbPort, key: Option<&RpmbKey>) -> anyhow::Result<Result<State, RpmbError>> {
    Ok(match emmc_port::rpmb::counter(port, key, nonce()?) {
        Ok(counter) => Ok(State::Counter(counter)),
        Err(RpmbError::Result(result)) if result.code() == RpmbResult::NO_KEY => Ok(State::NoKey),
        Err(error) => Err(error),
    })
}

fn counter(args: &RpmbCounterArgs) -> anyhow::Result<RpmbDocument> {
    let name = args.target.target.as_str();
    let mut warnings = Vec::new();
    let key = args.key.key.as_deref().map(|path| key_file::read(path, &mut warnings)).transpose()?;
    target::with(name, |target| {
        let mut document = RpmbDocument::new("counter", name, target, warnings);
        match state(target, key.as_ref())? {
            Ok(State::Counter(counter)) => {
                document.has_key = Some(true);
                document.counter = Some(counter);
                document.authenticated = Some(key.is_some());
            }
            Ok(State::NoKey) => {
                document.has_key = Some(false);
                if key.is_some() {
                    document.ended = "refused";
                    document.reason = Some("no key is programmed, so that nothing can be checked".into());
                }
            }
            Err(error @ RpmbError::Port(_)) => return Err(unable(name, error)),
            Err(error) => document.failed(&error),
        }
        Ok(document)
    })
}
