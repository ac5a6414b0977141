//! `rpmb read`: blocks, checked, into a file.

use std::io::Write as _;
use std::path::Path;

use emmc_port::rpmb::{READ_BLOCKS_MAX, RpmbError, RpmbKey};
use emmc_regs::rpmb::RpmbResult;

use super::target::{self, Target, unable};
use super::{RpmbDocument, exit, finish, key_file, nonce};
use crate::CommandResult;
use crate::cli::RpmbReadArgs;
use crate::commands::bench::consent::say;
use crate::output::Output;
use crate::save::Refused;

/// Refuses blocks that the RPMB does not have.
pub(super) fn check(name: &str, target: &Target, address: u32, count: u32) -> Result<(), Refused> {
    let blocks = target.shape.blocks;
    if count > 0 && address + count <= blocks {
        return Ok(());
    }
    let what = match count {
        0 => "no blocks".to_owned(),
        _ => format!("blocks {address} to {} end behind its {blocks}", address + count - 1),
    };
    Err(Refused(format!("{name}: {what}; nothing was sent")))
}

/// Reads blocks in parts.
///
/// Errors: no random numbers; within: the card's, a reply that is not believed.
pub(super) fn blocks(
    target: &mut Target,
    key: Option<&RpmbKey>,
    address: u32,
    count: u32,
) -> anyhow::Result<Result<Vec<u8>, RpmbError>> {
    let mut data = Vec::new();
    let mut at = address;
    while at < address + count {
        let part = (address + count - at).min(READ_BLOCKS_MAX.into());
        match emmc_port::rpmb::read(target, key, [at as u16, part as u16], nonce()?) {
            Ok(read) => data.extend_from_slice(&read),
            Err(error) => return Ok(Err(error)),
        }
        at += part;
    }
    Ok(Ok(data))
}

fn fetch(args: &RpmbReadArgs) -> anyhow::Result<(RpmbDocument, Vec<u8>)> {
    let name = args.target.target.as_str();
    let mut warnings = Vec::new();
    let key = args.key.key.as_deref().map(|path| key_file::read(path, &mut warnings)).transpose()?;
    target::with(name, |target| {
        check(name, target, args.address, args.count)?;
        let mut document = RpmbDocument::new("read", name, target, warnings);
        (document.first_block, document.count_blocks) = (Some(args.address), Some(args.count));
        match blocks(target, key.as_ref(), args.address, args.count)? {
            Ok(data) => {
                document.has_key = Some(true);
                document.authenticated = Some(key.is_some());
                Ok((document, data))
            }
            Err(RpmbError::Result(result)) if result.code() == RpmbResult::NO_KEY => {
                Err(unable(name, "no key is programmed, without which nothing is read"))
            }
            Err(error @ RpmbError::Port(_)) => Err(unable(name, error)),
            Err(error) => {
                document.failed(&error);
                Ok((document, Vec::new()))
            }
        }
    })
}

pub(super) fn run(args: &RpmbReadArgs, output: &mut Output) -> CommandResult {
    let path = args.output.as_path();
    let to_stdout = path == Path::new("-");
    anyhow::ensure!(!(to_stdout && output.is_json()), "-o - and --json would both print to standard output");
    if !to_stdout {
        crate::save::refuse_device(path)?;
        let card = Path::new(args.target.target.trim_start_matches("sim:"));
        let inputs: Vec<&Path> = args.key.key.as_deref().into_iter().chain([card]).collect();
        crate::save::refuse_inputs(path, &inputs)?;
        let is_there = path.symlink_metadata().is_ok();
        anyhow::ensure!(args.force || !is_there, "{}: exists already; --force replaces it", path.display());
    }
    let (mut document, data) = fetch(args)?;
    if document.ended != "complete" {
        return match to_stdout {
            false => finish(&document, output),
            true => {
                say(&format!("{}: {}", document.target, document.reason.as_deref().unwrap_or_default()));
                Ok(exit(&document))
            }
        };
    }
    if to_stdout {
        document.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
        if document.authenticated == Some(false) {
            say(&format!(
                "{}: not authenticated: without the key nothing proves that the card sent this",
                document.target
            ));
        }
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&data)?;
        stdout.flush()?;
        return Ok(exit(&document));
    }
    crate::save::write_whole(path, &data, args.force)?;
    document.output = Some(path.display().to_string());
    finish(&document, output)
}
