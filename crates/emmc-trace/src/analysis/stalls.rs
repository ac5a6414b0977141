//! Commands that took long, with what they were and who waited; and what limits the speed.

use super::result::Stall;
use crate::correlate::{Command, Commands};
use crate::event::Op;
use crate::notes::Notes;

/// From here on a command is a stall. Reads and writes of an eMMC take 0.1 to 10 ms.
const STALL_NS: u64 = 50_000_000;

pub(super) fn stalls(commands: &Commands, notes: &Notes) -> Vec<Stall> {
    let slow = commands.slowest().into_iter().filter(|command| command.took.0 >= STALL_NS);
    slow.map(|command| stall(&command, notes)).collect()
}

fn stall(command: &Command, notes: &Notes) -> Stall {
    let name = match command.opcode {
        0 => "CQE task".to_string(),
        opcode => format!("CMD{opcode}"),
    };
    Stall {
        at_s: command.at.0 as f64 / 1e9,
        took_ms: command.took.0 as f64 / 1e6,
        what: what(command),
        host: format!("mmc{}", command.host),
        command: name,
        argument: command.argument,
        size_bytes: u64::from(command.blocks) * 512,
        who: notes.names.get(command.pid),
    }
}

fn what(command: &Command) -> String {
    let kind = match (command.opcode, command.op) {
        _ if command.reliable => "reliable write",
        (_, Some(Op::Flush)) => "flush of the card's cache",
        (_, Some(Op::Discard)) => "discard",
        (_, Some(Op::Erase)) => "secure erase",
        (17 | 18, _) | (0, Some(Op::Read)) => "read",
        (24 | 25, _) | (0, Some(Op::Write)) => "write",
        (6, _) if command.argument >> 16 & 0xff == 32 => "flush of the card's cache",
        (6, _) if command.argument >> 16 & 0xff == 164 => "background operations (BKOPS_START)",
        (6, _) => "switch of a register",
        (38, _) => "erase or discard",
        (0, _) => "task of the command queue",
        (5, _) => "sleep or awake",
        (8, _) => "reading of EXT_CSD",
        _ => "command",
    };
    let mut text = kind.to_string();
    if command.blocks > 0 {
        let bytes = u64::from(command.blocks) * 512;
        text += &if bytes % 1024 == 0 { format!(" of {} KiB", bytes / 1024) } else { format!(" of {bytes} B") };
    }
    if command.polls > 1 {
        text += &format!(", with {} CMD13 that found the card busy", command.polls - 1);
    }
    if command.retuning {
        text += ", with re-tuning";
    }
    if command.error != 0 {
        text += &format!(", with error {}", command.error);
    }
    text
}

/// In sentences; those that cost most first.
pub(super) fn causes(
    stalls: &[Stall],
    commands: &Commands,
    (largest_sectors, largest): (u32, u64),
    behind_discard: u64,
) -> Vec<String> {
    let mut causes = Vec::new();
    let of = |word: &str| stalls.iter().filter(|stall| stall.what.starts_with(word)).collect::<Vec<_>>();
    for (word, why) in [
        ("reliable write", "the card makes the data durable before it answers"),
        ("flush", "the card empties its cache"),
        ("discard", "requests behind it wait"),
        ("erase", "requests behind it wait"),
        ("background", "the card does the collection that it put off, and nothing else"),
        ("write", "the card is busy with work of its own"),
        ("read", "the card is busy with work of its own"),
    ] {
        let found = of(word);
        if let Some(longest) = found.first() {
            let count = found.len();
            causes.push(format!("{count} x {word} of 50 ms or more, up to {:.1} ms: {why}", longest.took_ms));
        }
    }
    if commands.retuned > 0 {
        causes.push(format!("{} commands while re-tuning was needed or in progress", commands.retuned));
    }
    if commands.errors > 0 {
        causes.push(format!("{} commands ended with an error and may have been repeated", commands.errors));
    }
    if commands.partition_switches > 1 {
        causes.push(format!("{} switches between partitions (CMD6)", commands.partition_switches));
    }
    if matches!(largest_sectors, 128 | 256) && largest >= 8 {
        let kib = largest_sectors / 2;
        causes.push(format!(
            "{largest} requests have {kib} KiB, and none is larger: a cap of the request size or a bounce buffer \
             (max_sectors_kb)"
        ));
    }
    if behind_discard > 0 {
        causes.push(format!("{behind_discard} requests were queued while a discard was in progress"));
    }
    causes
}
