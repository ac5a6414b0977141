//! `bench`: a suite on a target.

use anyhow::{Context, bail};
use emmc_port::BlockTarget;
use emmc_units::{Bytes, Size};
use emmc_workload::{Bench, BenchError, BenchResult, Options, Suite, named, suites};

use crate::CommandResult;
use crate::cli::BenchArgs;
use crate::exit::Exit;
use crate::output::Output;

mod progress;

pub(crate) const SCHEMA: &str = "emmclab.bench/1";

pub(crate) fn run(args: &BenchArgs, output: &mut Output) -> CommandResult {
    if args.list {
        return list(output);
    }
    let suite = named(&args.suite).with_context(|| {
        let known: Vec<_> = suites().iter().map(|suite| suite.name()).collect();
        format!("--suite {:?}: expected one of {}", args.suite, known.join(", "))
    })?;
    let name = args.target.as_deref().unwrap_or_default();
    let mut target = open(name, args)?;
    let options = options(args, target.shape().size_bytes)?;
    let result = measure(suite, target.as_mut(), &options)?;
    output.print(SCHEMA, &result, emmc_report::present::bench)?;
    Ok(Exit::Good)
}

fn list(output: &mut Output) -> CommandResult {
    for suite in suites() {
        output.line(&format!("{:<12} {}", suite.name(), suite.about()))?;
    }
    Ok(Exit::Good)
}

fn open(name: &str, args: &BenchArgs) -> anyhow::Result<Box<dyn BlockTarget>> {
    #[cfg(feature = "sim")]
    if let Some(profile) = name.strip_prefix("sim:") {
        let powered = crate::virtual_card::Powered::named(profile)?;
        let (device, _) = powered.card.into_parts();
        return Ok(Box::new(emmc_card::sim::SimTarget::new(device, name, powered.now, !args.no_queueing)));
    }
    bail!("{name}: expected sim:PROFILE")
}

fn options(args: &BenchArgs, size_bytes: u64) -> anyhow::Result<Options> {
    let bytes = |size: Option<Size>| {
        size.map(|size| match size {
            Size::Exact(Bytes(bytes)) => bytes,
            Size::Percent(percent) => (u128::from(size_bytes) * u128::from(percent) / 100) as u64 / 4096 * 4096,
            Size::Max => size_bytes,
        })
    };
    Ok(Options {
        from_bytes: bytes(args.from).unwrap_or(0),
        size_bytes: bytes(args.size),
        queue_depth: args.queue_depth,
        write_budget_bytes: bytes(args.write_budget),
        rows: args.rows.clone(),
        read_only: args.read_only,
        seed: args.seed,
    })
}

fn measure(suite: &dyn Suite, target: &mut dyn BlockTarget, options: &Options) -> Result<BenchResult, BenchError> {
    let shape = target.shape().clone();
    let mut bar = progress::Bar::default();
    let outcome = Bench::run(suite, target, options, &mut bar);
    bar.finish();
    Ok(BenchResult {
        target: shape.name,
        target_kind: shape.kind,
        size_bytes: shape.size_bytes,
        engine: shape.engine.into(),
        seed: options.seed,
        outcome: outcome?,
    })
}
