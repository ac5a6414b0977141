//! Expected answers: `R1 00000900`, `R1 tran SWITCH_ERROR`, `R2 fe01*`, `none`, each with `, read 200 x 1` after it.

use emmc_card::card::Reply;
use emmc_regs::CardKind;
use emmc_regs::command::{DataDirection, Response};
use emmc_regs::r1::R1;

use super::bytes::hex;

/// The expected response to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    text: String,
    kind: String,
    value: Option<Value>,
    /// Direction, bytes of a block, blocks.
    data: Option<(DataDirection, u64, Option<u64>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    /// All words, first to last, as digits; of a shorter one the start.
    Digits(String),
    /// State and flags.
    Words(Vec<String>),
}

impl Answer {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (answer, data) = match text.split_once(',') {
            Some((answer, data)) => (answer, Some(parse_data(data)?)),
            None => (text, None),
        };
        let mut words = answer.split_whitespace();
        let kind = words.next().ok_or("an answer is missing")?.to_owned();
        let words: Vec<String> = words.map(str::to_owned).collect();
        let value = match words.as_slice() {
            [] => None,
            [any] if any == "*" => None,
            [digits] if is_digits(digits) => Some(Value::Digits(digits.to_ascii_lowercase())),
            _ => Some(Value::Words(words)),
        };
        Ok(Self { text: text.trim().to_owned(), kind, value, data })
    }

    /// What is wrong with a reply, if anything.
    pub(crate) fn differs(&self, reply: &Reply, kind: CardKind) -> Option<String> {
        let right =
            self.kind == name(&reply.response) && self.value_fits(&reply.response, kind) && self.data_fits(reply);
        (!right).then(|| format!("expected {}, found {}", self.text, show(reply, kind)))
    }

    fn value_fits(&self, response: &Response, kind: CardKind) -> bool {
        match (&self.value, response) {
            (None, _) => true,
            (Some(Value::Digits(digits)), _) => {
                let all = digits_of(response);
                digits.strip_suffix('*').map_or_else(|| all == *digits, |start| all.starts_with(start))
            }
            (Some(Value::Words(words)), Response::R1(r1) | Response::R1b(r1)) => {
                let ready = R1::READY_FOR_DATA.0;
                let said = R1(r1.0 & !ready).describe(kind);
                let without: Vec<&str> =
                    words.iter().map(String::as_str).filter(|word| *word != "READY_FOR_DATA").collect();
                said == without.join(" ")
            }
            (Some(Value::Words(_)), _) => false,
        }
    }

    fn data_fits(&self, reply: &Reply) -> bool {
        let Some((direction, bytes, blocks)) = self.data else { return true };
        reply.data.is_some_and(|data| {
            data.direction == direction && u64::from(data.block_bytes) == bytes && data.blocks.map(u64::from) == blocks
        })
    }
}

fn is_digits(word: &str) -> bool {
    let digits = word.strip_suffix('*').unwrap_or(word);
    digits.len() >= 2 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `read 200 x 1`.
fn parse_data(text: &str) -> Result<(DataDirection, u64, Option<u64>), String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [direction, bytes, "x", blocks] = words[..] else { return Err(format!("{text:?} is no data phase")) };
    let direction = match direction {
        "read" => DataDirection::Read,
        "write" => DataDirection::Write,
        other => return Err(format!("{other:?} is neither read nor write")),
    };
    let blocks = if blocks == "inf" { None } else { Some(hex(blocks)?) };
    Ok((direction, hex(bytes)?, blocks))
}

fn name(response: &Response) -> &'static str {
    match response {
        Response::None => "none",
        Response::R1(_) => "R1",
        Response::R1b(_) => "R1b",
        Response::R2(_) => "R2",
        Response::R3(_) => "R3",
        Response::R4(_) => "R4",
        Response::R5 { .. } => "R5",
        Response::R6 { .. } => "R6",
        Response::R7 { .. } => "R7",
    }
}

fn digits_of(response: &Response) -> String {
    let words = if matches!(response, Response::R2(_)) { 4 } else { 1 };
    response.words()[..words].iter().map(|word| format!("{word:08x}")).collect()
}

/// A reply in words.
pub(crate) fn show(reply: &Reply, kind: CardKind) -> String {
    let digits = digits_of(&reply.response);
    let mut text = match reply.response {
        Response::None => "none".to_owned(),
        Response::R1(r1) | Response::R1b(r1) => format!("{} {} ({digits})", name(&reply.response), r1.describe(kind)),
        _ => format!("{} {digits}", name(&reply.response)),
    };
    if let Some(data) = reply.data {
        let direction = if data.direction == DataDirection::Read { "read" } else { "write" };
        let blocks = data.blocks.map_or("inf".to_owned(), |blocks| format!("{blocks:x}"));
        text += &format!(", {direction} {:x} x {blocks}", data.block_bytes);
    }
    text
}
