//! `rpmb write`: blocks of a file, each write under the counter that the one before left.

#[cfg(all(test, feature = "sim"))]
mod tests;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use emmc_linux::hold::{self, Point};
use emmc_port::Consent;
use emmc_port::rpmb::{self, RpmbError, RpmbKey, RpmbPort, RpmbShape};
use emmc_regs::rpmb::{BLOCKS_MAX, DATA_BYTES};
use emmc_report::visible;

use super::target::{self, Target, unable};
use super::{RpmbDocument, State, key_file, read, state};
use crate::cli::{BenchArgs, RpmbWriteArgs};
use crate::commands::bench::consent::Question;
use crate::progress::Bar;
use crate::save::Refused;
use crate::signals::stop_by_signal;

/// The whole file.
fn content(args: &RpmbWriteArgs) -> anyhow::Result<Vec<u8>> {
    let most = u64::from(BLOCKS_MAX) * DATA_BYTES as u64;
    let data = match args.file == Path::new("-") {
        true => crate::input::limited("-", std::io::stdin().lock(), most)?,
        false => crate::input::read(&args.file, most)?,
    };
    let name = args.file.display();
    let is_whole = !data.is_empty() && data.len() % DATA_BYTES == 0;
    anyhow::ensure!(is_whole, "{name}: {} bytes; expected whole blocks of {DATA_BYTES} bytes", data.len());
    let blocks = data.len() / DATA_BYTES;
    anyhow::ensure!((args.from as usize) < blocks, "--from {} lies behind the {blocks} blocks of {name}", args.from);
    Ok(data)
}

/// Writes a file to a target.
pub(super) fn write(args: &RpmbWriteArgs, is_quiet: bool) -> anyhow::Result<RpmbDocument> {
    let name = args.target.target.as_str();
    let both = args.key.key == Path::new("-") && args.file == Path::new("-");
    anyhow::ensure!(!both, "FILE and --key cannot both be standard input");
    let mut warnings = Vec::new();
    let key = key_file::read(&args.key.key, &mut warnings)?;
    let data = content(args)?;
    target::with(name, |target| {
        let count = (data.len() / DATA_BYTES) as u32;
        read::check(name, target, args.address, count)?;
        let counter = counter_before(name, target, &key)?;
        let [first, left] = [args.address + args.from, count - args.from];
        let before = read::blocks(target, Some(&key), first, left)?
            .map_err(|error| unable(name, format!("{error}; nothing was written")))?;
        let consent = ask(target, args, ([first, left], &before), &data, is_quiet)?;
        let mut document = RpmbDocument::new("write", name, target, warnings);
        (document.first_block, document.count_blocks) = (Some(args.address), Some(count));
        (document.has_key, document.authenticated) = (Some(true), Some(true));
        let stop = Arc::new(AtomicBool::new(false));
        stop_by_signal(&stop)?;
        let (address, shape) = (args.address, target.shape);
        let mut job = Job { key: &key, data: &data, address, shape, consent, counter, at: args.from };
        job.run(target, &stop, &mut document)?;
        document.written_blocks = Some(job.at);
        // A card that refuses a counter has another one.
        let is_known = document.ended != "refused" && document.unsure_blocks.is_none();
        document.counter = is_known.then_some(job.counter);
        document.next = next(&document, args);
        Ok(document)
    })
}

/// The counter under which the first write is signed.
fn counter_before(name: &str, target: &mut Target, key: &RpmbKey) -> anyhow::Result<u32> {
    match state(target, Some(key))? {
        Ok(State::Counter(u32::MAX)) => {
            Err(unable(name, "its write counter has expired: it takes no more writes; nothing was written"))
        }
        Ok(State::Counter(counter)) => Ok(counter),
        Ok(State::NoKey) => Err(unable(name, "no key is programmed, without which nothing is written")),
        Err(error @ RpmbError::Port(_)) => Err(unable(name, error)),
        Err(error) => Err(Refused(format!("{name}: {error}; nothing was written")).into()),
    }
}

fn ask(
    target: &Target,
    args: &RpmbWriteArgs,
    ([first, left], before): ([u32; 2], &[u8]),
    data: &[u8],
    is_quiet: bool,
) -> Result<Consent, Refused> {
    let called = args.target.target.as_str();
    let after = &data[args.from as usize * DATA_BYTES..];
    let pairs = before.chunks(DATA_BYTES).zip(after.chunks(DATA_BYTES));
    let lost = pairs.filter(|(before, after)| before != after && before.iter().any(|byte| *byte != 0)).count();
    let product = target.card.product.as_deref().unwrap_or("unknown");
    let serial = target.card.serial.as_deref().unwrap_or("unknown");
    let mut told = format!("{}: {}, serial number {serial}", visible(called), visible(product));
    let _ = write!(told, "\n  the content of blocks {first} to {} of its RPMB is lost", first + left - 1);
    let _ = write!(told, "\n    {lost} of {left} blocks hold something else now");
    let without = "their content would be lost: --destroy allows that; nothing was written";
    let question = Question { told, without, called, name: &target.name, is_device: target.is_device, is_quiet };
    let RpmbWriteArgs { destroy, yes_i_mean, .. } = args;
    question.ask(&BenchArgs { destroy: *destroy, yes_i_mean: yes_i_mean.clone(), ..BenchArgs::default() })?;
    Ok(Consent::CONTENT_LOST)
}

struct Job<'a> {
    key: &'a RpmbKey,
    data: &'a [u8],
    /// The block of the RPMB where the first block of the file goes.
    address: u32,
    shape: RpmbShape,
    consent: Consent,
    counter: u32,
    /// Every block of the file before this one is written, from `--from` on.
    at: u32,
}

impl Job<'_> {
    /// Writes until the end, a signal or the first error.
    fn run(&mut self, port: &mut dyn RpmbPort, stop: &AtomicBool, document: &mut RpmbDocument) -> anyhow::Result<()> {
        let count = (self.data.len() / DATA_BYTES) as u32;
        let mut bar = Bar::new();
        while self.at < count {
            hold::reached(Point::Step, stop);
            if stop.load(Ordering::Relaxed) {
                (document.ended, document.reason) = ("stopped", Some("by a signal, between two writes".into()));
                break;
            }
            bar.show(Some(f64::from(self.at) / f64::from(count)), "write");
            let address = self.address + self.at;
            let blocks = self.shape.chunk(address, count - self.at);
            let [from, to] = [self.at, self.at + blocks].map(|block| block as usize * DATA_BYTES);
            let part = (address as u16, &self.data[from..to]);
            match rpmb::write(port, self.key, self.counter, part, self.consent) {
                Ok(counter) => (self.counter, self.at) = (counter, self.at + blocks),
                Err(error) => {
                    document.failed(&error);
                    if error.is_unknown() {
                        self.find_out(port, [address, address + blocks], document)?;
                    }
                    break;
                }
            }
        }
        bar.finish();
        Ok(())
    }

    /// After a write without a believable result: the counter, if the card still answers, shows whether it was done.
    fn find_out(
        &mut self,
        port: &mut dyn RpmbPort,
        range: [u32; 2],
        document: &mut RpmbDocument,
    ) -> anyhow::Result<()> {
        match state(port, Some(self.key))? {
            Ok(State::Counter(counter)) if counter == self.counter => {}
            Ok(State::Counter(counter)) if counter == self.counter.wrapping_add(1) => {
                (self.counter, self.at) = (counter, self.at + range[1] - range[0]);
            }
            _ => document.unsure_blocks = Some(range),
        }
        Ok(())
    }
}

/// What to do next.
fn next(document: &RpmbDocument, args: &RpmbWriteArgs) -> Vec<String> {
    let mut next = Vec::new();
    let (Some(count), Some(written)) = (document.count_blocks, document.written_blocks) else { return next };
    if written == count {
        return next;
    }
    let word = |name: &std::ffi::OsStr, or: &str| crate::shell::word(name).unwrap_or_else(|| or.into());
    if document.ended == "lost" {
        next.push("power the card off and on".into());
    }
    next.push(format!(
        "resume: emmclab rpmb write {} {} {} --key {} --from {written} --destroy",
        word(args.target.target.as_ref(), "TARGET"),
        args.address,
        word(args.file.as_os_str(), "FILE"),
        word(args.key.key.as_os_str(), "KEY"),
    ));
    next
}
