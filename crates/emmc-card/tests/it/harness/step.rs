//! The parsed lines of a script.

use std::ops::Range;

use emmc_units::Nanos;

use super::answer::Answer;
use super::bytes::{Bytes, hex};

/// A line and its step.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) step: Step,
}

/// The step of a line.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Identify,
    Command {
        text: String,
        index: u8,
        argument: Argument,
        damaged: bool,
        answer: Option<Answer>,
    },
    Data {
        bytes: Bytes,
        damaged: bool,
        status: Option<String>,
    },
    Expect(Bytes),
    ExpectNothing,
    Wait(Option<Nanos>),
    /// Time is taken from here.
    Start,
    /// Longer (true) or shorter than that.
    Took(bool, Nanos),
    State(String),
    ExtCsd {
        text: String,
        bytes: Range<usize>,
        mask: u8,
        value: Vec<u8>,
    },
    PowerOff,
    PowerOn,
    Reset,
    Cut(u64),
    /// The flash page that holds this sector of the user area stops reading.
    Spoil(u64),
    Repeat(u64),
    End,
}

/// An argument, to which the round of `repeat` may be added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Argument {
    base: u32,
    with_round: bool,
}

impl Argument {
    pub(crate) fn in_round(self, round: u64) -> u32 {
        if self.with_round { self.base.wrapping_add(round as u32) } else { self.base }
    }
}

impl Step {
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let (head, tail) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let tail = tail.trim();
        match head {
            "identify" => Ok(Self::Identify),
            "data" | "data!" => {
                let (bytes, status) = tail.split_once("->").map_or((tail, None), |(left, right)| (left, Some(right)));
                let status = status.map(|status| status.trim().to_owned());
                Ok(Self::Data { bytes: Bytes::parse(bytes)?, damaged: head == "data!", status })
            }
            "expect" if tail == "nothing" => Ok(Self::ExpectNothing),
            "expect" => Ok(Self::Expect(Bytes::parse(tail)?)),
            "wait" => Ok(Self::Wait(if tail.is_empty() { None } else { Some(duration(tail)?) })),
            "start" => Ok(Self::Start),
            "took" => took(tail),
            "state" => Ok(Self::State(tail.to_owned())),
            "power" if tail == "off" => Ok(Self::PowerOff),
            "power" if tail == "on" => Ok(Self::PowerOn),
            "reset" => Ok(Self::Reset),
            "cut" => Ok(Self::Cut(decimal(tail)?)),
            "spoil" => Ok(Self::Spoil(hex(tail)?)),
            "repeat" => Ok(Self::Repeat(decimal(tail)?)),
            "end" => Ok(Self::End),
            _ if head.starts_with("CMD") => command(head, tail),
            _ if head.starts_with("ext_csd[") => ext_csd(line),
            _ => Err(format!("no such step: {line:?}")),
        }
    }
}

fn command(head: &str, tail: &str) -> Result<Step, String> {
    let (head, damaged) = match head.strip_suffix('!') {
        Some(head) => (head, true),
        None => (head, false),
    };
    let index = decimal(&head[3..])?;
    let index = u8::try_from(index).ok().filter(|index| *index < 64).ok_or("a command has six bits")?;
    let (argument, answer) = match tail.split_once("->") {
        Some((argument, answer)) => (argument.trim(), Some(Answer::parse(answer)?)),
        None => (tail, None),
    };
    let (base, with_round) = match argument.strip_suffix("+$") {
        Some(base) => (base, true),
        None => (argument, false),
    };
    let base = u32::try_from(hex(base)?).map_err(|_| "an argument has 32 bits")?;
    let text = format!("CMD{index} {argument}");
    Ok(Step::Command { text, index, argument: Argument { base, with_round }, damaged, answer })
}

/// `ext_csd[179] == 1`, `ext_csd[212..216] == 00100000`, `ext_csd[246] & 3 == 1`.
fn ext_csd(line: &str) -> Result<Step, String> {
    let (left, value) = line.split_once("==").ok_or("a comparison needs `==`")?;
    let (left, mask) = match left.split_once('&') {
        Some((left, mask)) => (left, hex(mask.trim())? as u8),
        None => (left, 0xff),
    };
    let text = left.trim().to_owned();
    let places = text.trim_start_matches("ext_csd[").trim_end_matches(']');
    let bytes = match places.split_once("..") {
        Some((first, end)) => decimal(first)? as usize..decimal(end)? as usize,
        None => decimal(places)? as usize..decimal(places)? as usize + 1,
    };
    let value = value.trim();
    let value = if bytes.len() == 1 { vec![hex(value)? as u8] } else { Bytes::parse(value)?.in_round(0) };
    if bytes.end > 512 || value.len() != bytes.len() {
        return Err(format!("{text} has not as many bytes as the value"));
    }
    Ok(Step::ExtCsd { text, bytes, mask, value })
}

fn decimal(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("{text:?} is no decimal number"))
}

/// `> 5ms`, `< 5ms`.
fn took(text: &str) -> Result<Step, String> {
    let longer = match text.chars().next() {
        Some('>') => true,
        Some('<') => false,
        _ => return Err("took needs > or <".into()),
    };
    Ok(Step::Took(longer, duration(text[1..].trim())?))
}

fn duration(text: &str) -> Result<Nanos, String> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let number = decimal(&digits)?;
    match text[digits.len()..].trim() {
        "us" => Ok(Nanos::from_micros(number)),
        "ms" => Ok(Nanos::from_millis(number)),
        "s" => Ok(Nanos::from_secs(number)),
        other => Err(format!("{other:?} is no unit of time: us, ms, s")),
    }
}
