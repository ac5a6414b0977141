//! Executes orders and builds their replies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emmc_card::card::Card;
use emmc_card::condition::Internals;
use emmc_card::device::{Area, Device};
use emmc_card::nand::BlockHealth;
use emmc_card::nand::FaultPlan;
use emmc_units::{Instant, Nanos};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Control, Order};
use crate::layer::{Counts, Fault, Kind, Summary};
use crate::sdhci::HostFault;
use crate::served::{ControllerRequests, DrivenClient};

/// The internal state of a served card.
#[derive(Debug, Serialize)]
pub struct ServedState {
    /// It has power.
    pub powered: bool,
    /// The state as in CURRENT_STATE; absent if no host has initialised the card.
    pub state: Option<String>,
    /// A password locks it.
    pub locked: bool,
    /// How many times slower than the host machine's clock the card's clock runs.
    pub dilation: u32,
    /// Clients wait until the card has finished.
    pub delays: bool,
    /// Programs and erases that the flash has started.
    pub operations: u64,
    /// Open blocks: neither erased nor full.
    pub open_blocks: Vec<u32>,
    /// Allocation units whose data these blocks hold: ranges of an area, each as large as a block.
    pub open_units: Vec<OpenUnit>,
    /// Finished units that the last power cut damaged, because they shared word lines with an interrupted operation.
    pub damaged_by_cut: Vec<DamagedUnit>,
    /// How much of each area holds data.
    pub mapped: Vec<MappedArea>,
    /// RPMB's write counter; absent if no key is programmed.
    pub rpmb_counter: Option<u32>,
    /// Injected errors that are still pending.
    pub faults: Vec<Fault>,
    /// Injected errors of host commands that are still pending.
    pub host_faults: Vec<HostFault>,
    /// When the next order for later is due, since the client was started. Absent: there is none. Unit: nanoseconds.
    pub next_order_ns: Option<u64>,
    /// Why orders for later could not be executed.
    pub failed_orders: Vec<String>,
    /// Areas, wear, translation layer and blocks, as in `sim info`.
    pub inside: Internals,
}

/// An allocation unit that is being written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct OpenUnit {
    /// Its area's name.
    pub area: String,
    /// Where it begins. Unit: sectors of 512 bytes.
    pub first: u64,
    /// Unit: sectors of 512 bytes.
    pub sectors: u64,
    /// Open blocks that hold data of it.
    pub blocks: Vec<u32>,
}

/// A mapping unit that a cut of power damaged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DamagedUnit {
    /// Its area's name.
    pub area: String,
    /// Where it begins. Unit: sectors of 512 bytes.
    pub first: u64,
    /// Unit: sectors of 512 bytes.
    pub sectors: u64,
}

/// How much of an area holds data.
#[derive(Debug, Serialize)]
pub struct MappedArea {
    /// Its name.
    pub area: String,
    /// Unit: sectors of 512 bytes.
    pub sectors: u64,
    /// Sectors that were written and not trimmed since. Unit: sectors of 512 bytes.
    pub mapped_sectors: u64,
}

/// Statistics of the server.
#[derive(Debug, Serialize)]
pub struct ServedStats {
    /// Counts by kind of request, over all block devices.
    pub requests: std::collections::BTreeMap<&'static str, Counts>,
    /// Requests of a host's driver to the SD host controller, as the card saw them.
    pub controller: ControllerRequests,
    /// The clock and the accesses of a client that drives the card's clock; absent: it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<DrivenClient>,
    /// How late clients got their replies, compared with the card's time, by the host machine's clock. Unit:
    /// microseconds.
    pub lateness_us: Summary,
    /// Number of replies in `lateness_us`.
    pub answers: u64,
}

/// Carries out an order.
///
/// Errors: why it cannot be carried out.
pub(super) fn carry_out(control: &Arc<Control>, order: Order) -> Result<Value, String> {
    let served = &control.served;
    let failed = |error: crate::block::BlockError| error.to_string();
    match order {
        Order::Cut { at_operation: None, .. } => served.cut_power().map_err(failed)?,
        Order::Cut { at_operation: Some(operation), seed } => served
            .with_card(|card, _| {
                let nand = card.device_mut().nand_mut();
                nand.arm(FaultPlan { step: nand.steps() + operation, seed });
            })
            .map_err(failed)?,
        Order::On => served.restore_power().map_err(failed)?,
        Order::Reset => served.hardware_reset().map_err(failed)?,
        Order::Inject { fault } => control.faults.inject(fault)?,
        Order::InjectHost { fault } => control.host_faults.inject(fault),
        Order::ClearFaults => {
            control.faults.clear();
            control.host_faults.clear();
        }
        Order::State => {
            let clock = served.clock_now();
            let look = |card: &mut Card, now: Instant| state(card, now);
            let mut state = served.with_card(look).map_err(failed)?;
            (state.dilation, state.delays) = (clock.dilation().unwrap_or(1), clock.has_delays());
            state.faults = control.faults.list();
            state.host_faults = control.host_faults.list();
            state.next_order_ns = served.next_scheduled().map(|at| at.since(served.started()).0);
            state.failed_orders = served.failed_acts();
            return serde_json::to_value(state).map_err(|error| error.to_string());
        }
        Order::Speed { .. } if served.clock_now().is_driven() => {
            return Err("the card's clock is its client's: it has no dilation and no delays".into());
        }
        Order::Speed { dilation, delays } => {
            dilation.into_iter().for_each(|dilation| served.set_dilation(dilation));
            delays.into_iter().for_each(|delays| served.set_delays(delays));
        }
        Order::Stats => {
            let (lateness, answers) = served.lateness();
            let requests = Kind::ALL.map(|kind| (kind.name(), control.stats.of(kind))).into();
            let controller = served.controller_requests();
            let client = served.driven_client();
            let stats = ServedStats { requests, controller, client, lateness_us: lateness, answers };
            return serde_json::to_value(stats).map_err(|error| error.to_string());
        }
        Order::Stop => return Err("an order to stop waits for its outcome".into()),
        Order::At { .. } | Order::In { .. } if !served.clock_now().is_driven() => {
            return Err("only a card on its client's clock takes orders for later (serve --uml)".into());
        }
        Order::At { at_ns, order } => schedule(control, served.started() + Nanos(at_ns), *order)?,
        Order::In { in_ns, order } => schedule(control, served.now() + Nanos(in_ns), *order)?,
    }
    Ok(done())
}

/// Has an order executed at `at` of the card's clock.
///
/// Errors: that has passed.
fn schedule(control: &Arc<Control>, at: Instant, order: Order) -> Result<(), String> {
    let served = &control.served;
    // The schedule belongs to the card, which the control holds.
    let later = Arc::downgrade(control);
    let act = move || later.upgrade().map_or(Ok(()), |control| carry_out(&control, order).map(drop));
    served.schedule(at, act).map_err(|now| {
        format!("the client's clock already shows {} ns, expected at least that", now.since(served.started()).0)
    })
}

/// The reply to an order without a result.
pub(super) fn done() -> Value {
    json!({ "ok": true })
}

fn state(card: &mut Card, now: Instant) -> ServedState {
    let state = card.state(now).map(|state| format!("{state:?}").to_lowercase());
    let rpmb_counter = card.rpmb_counter();
    let locked = card.is_locked();
    let device = card.device();
    let nand = device.nand();
    let is_open = |block: &u32| {
        let pages = nand.pages_of(*block);
        let block = nand.block(*block);
        block.health == BlockHealth::Good && block.next_page > 0 && block.next_page < pages
    };
    let open_blocks: Vec<u32> = (0..nand.geometry().blocks).filter(is_open).collect();
    let unit = u64::from(nand.geometry().unit_bytes / 512);
    let mapped = |area: Area| {
        let sectors = device.sectors(area);
        let units = (0..sectors).step_by(unit as usize).filter(|lba| device.holds(area, *lba)).count() as u64;
        MappedArea { area: area.to_string(), sectors, mapped_sectors: (units * unit).min(sectors) }
    };
    ServedState {
        powered: nand.off_since().is_none(),
        state,
        locked,
        dilation: 1,
        delays: true,
        operations: nand.steps(),
        open_units: open_units(device, &open_blocks),
        damaged_by_cut: damaged_units(device),
        open_blocks,
        mapped: device.areas().into_iter().map(mapped).collect(),
        rpmb_counter,
        faults: Vec::new(),
        host_faults: Vec::new(),
        next_order_ns: None,
        failed_orders: Vec::new(),
        inside: Internals::of(device, now.since(Instant::START).as_secs_f64()),
    }
}

fn open_units(device: &Device, open_blocks: &[u32]) -> Vec<OpenUnit> {
    let geometry = device.nand().geometry();
    let block_sectors = u64::from(geometry.units_per_block()) * u64::from(geometry.unit_bytes / 512);
    let mut units: BTreeMap<(String, u64), BTreeSet<u32>> = BTreeMap::new();
    for &block in open_blocks {
        for (area, lba) in device.sectors_in(block) {
            units.entry((area.to_string(), lba / block_sectors * block_sectors)).or_default().insert(block);
        }
    }
    let unit = |((area, first), blocks): (_, BTreeSet<u32>)| OpenUnit {
        area,
        first,
        sectors: block_sectors,
        blocks: blocks.into_iter().collect(),
    };
    units.into_iter().map(unit).collect()
}

fn damaged_units(device: &Device) -> Vec<DamagedUnit> {
    let sectors = u64::from(device.nand().geometry().unit_bytes / 512);
    let mut units: Vec<DamagedUnit> = device
        .damaged_pairs()
        .into_iter()
        .map(|(area, first)| DamagedUnit { area: area.to_string(), first, sectors })
        .collect();
    units.sort();
    units.dedup();
    units
}
