//! Orders, as JSON.

use serde::{Deserialize, Serialize};

use crate::layer::Fault;
use crate::sdhci::HostFault;

/// An order; one per line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// Cuts the card's power.
    Cut {
        /// Absent: now. Else at the Nth program or erase of the flash from now on; 1 is the next one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_operation: Option<u64>,
        /// Seed for the point inside that operation and for the damage.
        #[serde(default)]
        seed: u64,
    },
    /// Gives it power again.
    On,
    /// Asserts and releases RST_n.
    Reset,
    /// Makes requests of block devices fail.
    Inject {
        /// Which requests.
        #[serde(default)]
        fault: Fault,
    },
    /// Makes commands of a host fail on the bus between its controller and the card.
    InjectHost {
        /// Which commands.
        fault: HostFault,
    },
    /// Removes all pending errors of requests and commands.
    ClearFaults,
    /// Reports the card's internal state.
    State,
    /// Sets how fast the card's clock runs, and whether clients wait.
    Speed {
        /// How many times slower than the host machine's clock.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dilation: Option<u32>,
        /// Whether clients wait until the card is done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delays: Option<bool>,
    },
    /// Reports the statistics.
    Stats,
    /// Saves the card and ends the server.
    Stop,
    /// Executes an order later, at an exact instant; only on a clock that its client drives.
    At {
        /// Since the client was started, by its clock. Unit: nanoseconds.
        at_ns: u64,
        /// One of `cut`, `on`, `reset`, `inject`, `inject-host`, `clear-faults`.
        order: Box<Order>,
    },
    /// The same, as long after this order came.
    In {
        /// By the client's clock. Unit: nanoseconds.
        in_ns: u64,
        /// As in `At`.
        order: Box<Order>,
    },
}

/// Parses a line.
///
/// Errors: the reason why it is invalid.
pub(super) fn parse(line: &str) -> Result<Order, String> {
    let order: Order = serde_json::from_str(line).map_err(|error| format!("not understood: {error}"))?;
    check(&order)?;
    Ok(order)
}

/// Errors: the reason why an order is invalid.
pub(super) fn check(order: &Order) -> Result<(), String> {
    match order {
        Order::Cut { at_operation: Some(0), .. } => Err("at_operation: operations count from 1".into()),
        Order::Speed { dilation: Some(0), .. } => Err("dilation: expected at least 1".into()),
        Order::InjectHost { fault } if fault.command.is_some_and(|command| command > 63) => {
            Err("command: expected 0 to 63".into())
        }
        Order::At { order, .. } | Order::In { order, .. } => match order.as_ref() {
            Order::State | Order::Stats | Order::Speed { .. } | Order::Stop | Order::At { .. } | Order::In { .. } => {
                Err("an order for later: expected cut, on, reset, inject, inject-host or clear-faults".into())
            }
            order => check(order),
        },
        _ => Ok(()),
    }
}
