//! `sim ctl`: controls a card that is being served.

use std::io::ErrorKind;

use anyhow::{Error, anyhow, bail};
use emmc_report::{Document, KeyValue};
use emmc_serve::control::{Order, ask};
use emmc_serve::layer::{Fault, Kind};
use emmc_serve::sdhci::{HostError, HostFault};
use emmc_serve::store::{SOCKET_FILE, STATE_FILE};
use serde::Serialize;
use serde_json::Value;

use crate::CommandResult;
use crate::cli::{CtlOrder, HostErrorArg, KindArg, SimCtlArgs};
use crate::exit::Exit;
use crate::output::Output;
use crate::virtual_card::folder;

pub(crate) const SCHEMA: &str = "emmclab.sim-ctl/1";

/// Latency figures, which are absent if no request was completed.
const FIGURES: [&str; 3] = [" p50", " p99", " max"];

/// What `sim ctl --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Answer {
    /// The card's folder, as named.
    pub(crate) card: String,
    /// The response of the server: `ok`, or the requested values.
    #[serde(flatten)]
    pub(crate) answer: Value,
}

pub(crate) fn run(args: &SimCtlArgs, output: &mut Output) -> CommandResult {
    let place = folder(&args.card);
    let folder = place.display();
    if !place.join(STATE_FILE).is_file() {
        bail!("{folder}: not a virtual card (expected {STATE_FILE} in it; see sim create)");
    }
    let order = timed_order(args)?;
    let asked = ask(&place.join(SOCKET_FILE), &order);
    let answer = asked.map_err(|error| match error.kind() {
        ErrorKind::TimedOut => anyhow!("{folder}: {error}"),
        _ => Error::new(error).context(format!("{folder}: this card is not being served")),
    })?;
    if let Some(error) = answer.get("error").and_then(Value::as_str) {
        bail!("{folder}: {error}");
    }
    let answer = Answer { card: folder.to_string(), answer };
    output.print(SCHEMA, &answer, present)?;
    Ok(Exit::Good)
}

/// The order, with its time.
///
/// Errors: it says nothing.
pub(crate) fn timed_order(args: &SimCtlArgs) -> anyhow::Result<Order> {
    let order = order(&args.order)?;
    Ok(match (args.at, args.later) {
        (Some(at_ns), _) => Order::At { at_ns, order: Box::new(order) },
        (None, Some(in_ns)) => Order::In { in_ns, order: Box::new(order) },
        (None, None) => order,
    })
}

fn order(order: &CtlOrder) -> anyhow::Result<Order> {
    Ok(match order {
        CtlOrder::Cut { at_operation, seed } => Order::Cut { at_operation: *at_operation, seed: *seed },
        CtlOrder::On => Order::On,
        CtlOrder::Reset => Order::Reset,
        CtlOrder::Inject { kind, area, from, to, which } => {
            let (kind, area) = (kind.map(kind_of), area.clone());
            let (after, times) = (which.after, which.times);
            Order::Inject { fault: Fault { kind, area, from: *from, to: *to, after, times } }
        }
        CtlOrder::InjectHost { error, command, above, every, which } => {
            let error = host_error(*error);
            let (after, times) = (which.after, which.times);
            let (command, above_hz, every) = (*command, *above, *every);
            Order::InjectHost { fault: HostFault { command, above_hz, every, after, times, ..HostFault::of(error) } }
        }
        CtlOrder::ClearFaults => Order::ClearFaults,
        CtlOrder::State => Order::State,
        CtlOrder::Speed { times: None, delays: None } => bail!("speed: expected TIMES or --delays"),
        CtlOrder::Speed { times, delays } => Order::Speed { dilation: *times, delays: *delays },
        CtlOrder::Stats => Order::Stats,
        CtlOrder::Stop => Order::Stop,
    })
}

fn kind_of(kind: KindArg) -> Kind {
    match kind {
        KindArg::Read => Kind::Read,
        KindArg::Write => Kind::Write,
        KindArg::Zero => Kind::Zero,
        KindArg::Trim => Kind::Trim,
        KindArg::Flush => Kind::Flush,
    }
}

fn host_error(error: HostErrorArg) -> HostError {
    match error {
        HostErrorArg::CommandTimeout => HostError::CommandTimeout,
        HostErrorArg::CommandCrc => HostError::CommandCrc,
        HostErrorArg::DataTimeout => HostError::DataTimeout,
        HostErrorArg::DataCrc => HostError::DataCrc,
        HostErrorArg::Status => HostError::Status,
    }
}

/// The answer as text.
pub(crate) fn present(answer: &Answer) -> Document {
    let mut document = Document::new(format!("Virtual card {}", answer.card));
    let mut lines = Vec::new();
    flatten("", &answer.answer, &mut lines);
    document.section("answer", "Answer").push(lines);
    document
}

/// Every scalar value with its path; lists by their length.
fn flatten(place: &str, value: &Value, lines: &mut Vec<KeyValue>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let place = if place.is_empty() { name.clone() } else { format!("{place} {name}") };
                flatten(&place, value, lines);
            }
        }
        Value::Array(values) if values.iter().any(Value::is_object) && values.len() <= 8 => {
            for (index, value) in (1..).zip(values) {
                flatten(&format!("{place} {index}"), value, lines);
            }
        }
        Value::Array(values) => lines.push(KeyValue::new(place.replace('_', " "), format!("{} of them", values.len()))),
        // A figure without samples; other absent values give no line.
        Value::Null if FIGURES.iter().any(|name| place.ends_with(name)) => {
            lines.push(KeyValue::new(place.replace('_', " "), "-"));
        }
        Value::Null => {}
        Value::String(text) => lines.push(KeyValue::new(place.replace('_', " "), text.as_str())),
        other => lines.push(KeyValue::new(place.replace('_', " "), other.to_string())),
    }
}
