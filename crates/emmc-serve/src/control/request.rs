//! What can be asked, as JSON.

use serde::{Deserialize, Serialize};

use crate::layer::Fault;
use crate::sdhci::HostFault;

/// An order, one a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// Cuts the card's power.
    Cut {
        /// Not now, but when the flash does its so-manieth program or erase from now on; 1 is the next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_operation: Option<u64>,
        /// Where within that operation, and what it damages, by chance.
        #[serde(default)]
        seed: u64,
    },
    /// Gives it power again.
    On,
    /// Asserts and releases RST_n.
    Reset,
    /// Makes requests of block devices fail.
    Inject {
        /// Which.
        #[serde(default)]
        fault: Fault,
    },
    /// Makes commands of a host fail, on the lines between its controller and the card.
    InjectHost {
        /// Which.
        fault: HostFault,
    },
    /// No request and no command fails any more of those that were to.
    ClearFaults,
    /// The true state of the card.
    State,
    /// How fast the card's clock runs, and whether clients wait for it.
    Speed {
        /// So many times slower than the machine's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dilation: Option<u32>,
        /// Whether clients wait until the card is done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delays: Option<bool>,
    },
    /// What was served.
    Stats,
    /// Keeps everything and ends.
    Stop,
}

/// The order in a line.
///
/// Errors: what is wrong with it.
pub(super) fn parse(line: &str) -> Result<Order, String> {
    let order: Order = serde_json::from_str(line).map_err(|error| format!("not understood: {error}"))?;
    match &order {
        Order::Cut { at_operation: Some(0), .. } => Err("at_operation: operations count from 1".into()),
        Order::Speed { dilation: Some(0), .. } => Err("dilation: expected at least 1".into()),
        Order::InjectHost { fault } if fault.command.is_some_and(|command| command > 63) => {
            Err("command: expected 0 to 63".into())
        }
        _ => Ok(order),
    }
}
