//! A bench on a virtual card, in simulated time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail};
use emmc_card::device::Device;
use emmc_card::nand::StoredContent;
use emmc_card::profile::MeasuringHost;
use emmc_host::{Board, HostDescription, HostTarget};
use emmc_port::BlockTarget;
use emmc_sim::SimTarget;
use emmc_units::Nanos;
use emmc_workload::context::{BusFacts, Context, Wear};
use emmc_workload::{BenchResult, Options, Suite};

use super::demand::Demand;
use super::{options, run_suite};
use crate::cli::BenchArgs;
use crate::virtual_card::Powered;

/// What a virtual card is attached to.
pub(super) enum Attached {
    /// A board that ships.
    Board(&'static Board),
    /// A host from a file.
    Described(Box<HostDescription>),
}

impl Attached {
    fn queues(&self) -> bool {
        match self {
            Self::Board(board) => board.queues(),
            Self::Described(host) => host.cqe.is_some(),
        }
    }
}

/// How a virtual card is attached.
pub(super) struct How {
    /// The controller submits more than one request at a time.
    pub(super) queueing: bool,
    /// How often the queue engine asks for ready tasks; `None`: the usual value.
    pub(super) polling: Option<Nanos>,
    /// A board's spans or page cache, or a host from a file.
    pub(super) board: Option<Attached>,
    /// The host asks with growing pauses whether a flush has ended.
    pub(super) flush_polling: bool,
    /// Prints the demand of the suite to standard error before it begins.
    pub(super) announces: bool,
}

/// Runs a suite on the card that `sim:` names.
pub(super) fn bench(
    suite: &dyn Suite,
    name: &str,
    profile: &str,
    args: &BenchArgs,
    is_quiet: bool,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<BenchResult> {
    let board = args.board.as_deref().map(board).transpose()?;
    let polling = args.queue_poll_us;
    let queueing = !args.no_queueing && board.as_ref().is_none_or(Attached::queues);
    let how = How { queueing, polling, board, flush_polling: !args.no_flush_polling, announces: !is_quiet };
    // Only after the card exists, so that Ctrl-C during ageing ends the process at once.
    let told = |size_bytes| {
        crate::signals::stop_by_signal(&stop)?;
        options(args, size_bytes)
    };
    measure(suite, name, profile, how, told, Arc::clone(&stop))
}

/// Runs a suite on a virtual card.
pub(super) fn measure(
    suite: &dyn Suite,
    name: &str,
    profile: &str,
    how: How,
    options: impl FnOnce(u64) -> anyhow::Result<Options>,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<BenchResult> {
    let keep = if suite.reads_content() { StoredContent::Data } else { StoredContent::Nothing };
    let powered = Powered::named(profile, keep)?;
    let (device, _) = powered.card.into_parts();
    let mut context = context(&device, name);
    let mut target = SimTarget::new(device, name, powered.now, how.queueing);
    if let Some(interval) = how.polling {
        target.set_polling(interval);
    }
    if !how.flush_polling {
        target.wait_for_flushes();
    }
    let options = options(target.shape().size_bytes)?;
    if how.announces {
        let cost = suite.cost(target.shape(), &options)?;
        let (context, capacity_bytes) = (&context, target.shape().size_bytes);
        let cycles = Some(target.device().profile().nand.native.endurance);
        let (suite, time_most) = (suite.name(), suite.time_most());
        Demand { suite, cost, time_most, beside_bytes: 0, context, capacity_bytes, cycles }.announce(name, false);
    }
    // A host's model passes no content on, and times do not matter then.
    let measuring = target.device().profile().host.filter(|_| !suite.reads_content());
    let (mut result, target) = match (&how.board, measuring) {
        (Some(Attached::Described(described)), _) => {
            let host = HostTarget::described(target, described, how.queueing);
            let HostDescription { name, description, sources, .. } = described.as_ref();
            context.notes.push(format!("behind {name}, {description}: {}", sources.join("; ")));
            behind(host, suite, &options, stop, &mut context)?
        }
        (Some(Attached::Board(board)), _) => {
            let host = HostTarget::new(target, board, how.queueing);
            context.notes.push(format!("behind {}: {}", board.title, board.source));
            behind(host, suite, &options, stop, &mut context)?
        }
        (None, Some(MeasuringHost { read_us, write_us, us_per_kib, command_kib })) => {
            let target = target.with_commands_of(u64::from(command_kib) << 10);
            let [read, write, per_kib] = [read_us, write_us, us_per_kib].map(Nanos::from_micros_f64);
            let host = HostTarget::measured(target, read, write, per_kib);
            let what = format!("the host on which it was measured: {read_us:.0} us a read, {write_us:.0} us a write");
            context.notes.push(format!("behind {what}"));
            behind(host, suite, &options, stop, &mut context)?
        }
        (None, None) => (run_suite(suite, &mut target, &options, stop)?, target),
    };
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

/// Runs a suite on a card behind a host.
fn behind(
    mut host: HostTarget<SimTarget>,
    suite: &dyn Suite,
    options: &Options,
    stop: Arc<AtomicBool>,
    context: &mut Context,
) -> anyhow::Result<(BenchResult, SimTarget)> {
    let result = run_suite(suite, &mut host, options, stop)?;
    let spent = host.spent();
    if spent.pre_ns > 0 {
        let share = spent.overhead_share() * 100.0;
        context.notes.push(format!("software before and after the card: {share:.0} % of the requests' time"));
    }
    Ok((result, host.into_card()))
}

fn board(name: &str) -> anyhow::Result<Attached> {
    if let Some(board) = emmc_host::board(name) {
        return Ok(Attached::Board(board));
    }
    if let Some(host) = emmc_host::host(name) {
        return Ok(Attached::Described(Box::new(host)));
    }
    if !(name.contains('/') || name.ends_with(".toml")) {
        let boards = emmc_host::BOARDS.iter().map(|board| board.name);
        let known: Vec<_> = boards.chain(emmc_host::HOSTS.map(|(name, _)| name)).collect();
        bail!("--board {name:?}: expected one of {}, or the file of a host (NAME.toml)", known.join(", "));
    }
    let text = crate::input::text(name.as_ref(), crate::input::HOST_BYTES_MAX)?;
    let host = HostDescription::from_toml(&text).with_context(|| format!("{name}: not the file of a host"))?;
    Ok(Attached::Described(Box::new(host)))
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
        mode: format!("{mode:?}").to_uppercase(),
        lines: mode.width() as u8,
        clock_hz,
        mb_per_s_max: clock_hz as f64 * f64::from(mode.width()) / 8.0 * edges / 1e6,
        source: "the profile: clock x lines x edges".into(),
    });
    context
}
