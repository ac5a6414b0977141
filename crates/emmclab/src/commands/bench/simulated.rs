//! A bench on a virtual card, in simulated time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use emmc_card::device::Device;
use emmc_card::sim::SimTarget;
use emmc_port::BlockTarget;
use emmc_workload::context::{BusFacts, Context, Wear};
use emmc_workload::{BenchResult, Suite};

use super::{options, run_suite};
use crate::cli::BenchArgs;
use crate::virtual_card::Powered;

/// Runs a suite on the card that `sim:` names.
pub(super) fn bench(
    suite: &dyn Suite,
    profile: &str,
    args: &BenchArgs,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<BenchResult> {
    super::stop_by_signal(&stop)?;
    let powered = Powered::named(profile)?;
    let name = args.target.as_deref().unwrap_or_default();
    let (device, _) = powered.card.into_parts();
    let mut context = context(&device, name);
    let mut target = SimTarget::new(device, name, powered.now, !args.no_queueing);
    let options = options(args, target.shape().size_bytes)?;
    let mut result = run_suite(suite, &mut target, &options, stop)?;
    let device = target.device();
    context.life_after = self::context(device, name).life_before;
    let endurance = device.profile().nand.native.endurance;
    context.wear = Some(Wear::of(result.outcome.written_bytes, result.size_bytes, Some(endurance)));
    if let Some(card) = &mut context.card {
        card.queueing_on = card.queueing_on.map(|_| target.queues());
    }
    result.context = context;
    Ok(result)
}

fn context(device: &Device, name: &str) -> Context {
    let mut context = Context::default();
    let data = device.card_data(name);
    context.notes = data.origins.first().map(|origin| origin.notes.clone()).unwrap_or_default();
    emmc_linux::bench_context::of_card(&data, &mut context);
    let (controller, mode) = (&device.profile().controller, device.bus().mode());
    let clock_hz = controller.bus_clock_mhz.map_or(mode.clock_hz(), |mhz| (mhz * 1e6) as u64).min(mode.clock_hz());
    let edges = if mode.ddr() { 2.0 } else { 1.0 };
    context.bus = Some(BusFacts {
        mode: format!("{mode:?}"),
        lines: mode.width() as u8,
        clock_hz,
        mb_per_s_max: clock_hz as f64 * f64::from(mode.width()) / 8.0 * edges / 1e6,
        source: "the profile: clock x lines x edges".into(),
    });
    context
}
