//! `sim pipeline`: host and card as a pipeline of three stages.

use anyhow::{Context, bail};
use emmc_host::{
    CqEngine, MeasuredSpans, PLATFORMS, Pipeline, PipelineResult, PipelineStudy, Platform, Spans, paper, platform,
};

use crate::CommandResult;
use crate::cli::{CqEngineName, SimPipelineArgs};
use crate::exit::Exit;
use crate::output::{Output, Page};

pub(crate) const SCHEMA: &str = "emmclab.sim-pipeline/1";

/// Requests that the timeline shows.
const DRAWN: usize = 12;

pub(crate) fn run(args: &SimPipelineArgs, output: &mut Output) -> CommandResult {
    let result = study(args)?;
    #[cfg(feature = "html")]
    let page = Page { path: args.save.output.as_deref(), force: args.save.force, ..Page::default() };
    #[cfg(not(feature = "html"))]
    let page = Page::default();
    output.report(SCHEMA, &result, &page, emmc_report::present::pipeline)?;
    Ok(Exit::Good)
}

fn study(args: &SimPipelineArgs) -> anyhow::Result<PipelineResult> {
    let mut result = PipelineResult { paper: args.tables.then(paper::reproduce), ..PipelineResult::default() };
    if let Some(name) = &args.platform {
        let board = board(name)?;
        for workload in workloads(board, args.workload.as_deref())? {
            let study = PipelineStudy::of(changed(args, board.pipeline(workload)), args.requests, DRAWN)?;
            result.pipelines.push(study.named(workload));
        }
        result.platform = Some(board.into());
    } else if let Some(pipeline) = own(args)? {
        result.pipelines.push(PipelineStudy::of(changed(args, pipeline), args.requests, DRAWN)?);
    } else {
        let of_a_pipeline = [
            ("--queue-depth", args.depth.is_some()),
            ("--cores", args.cores.is_some()),
            ("--cqe", args.cqe.is_some()),
            ("--serial", args.serial.is_some()),
            ("--gap", args.gap.is_some()),
        ];
        if let Some((name, _)) = of_a_pipeline.iter().find(|(_, is_given)| *is_given) {
            bail!(
                "{name} changes nothing in the tables; expected --pre, --hw, --post and --chunk, or --board, with it"
            );
        }
    }
    Ok(result)
}

fn board(name: &str) -> anyhow::Result<&'static Platform> {
    let known = PLATFORMS.map(|platform| platform.name).join(", ");
    platform(name).with_context(|| format!("--board {name}: unknown; expected one of {known}"))
}

fn workloads(board: &'static Platform, name: Option<&str>) -> anyhow::Result<Vec<&'static MeasuredSpans>> {
    let Some(name) = name else { return Ok(board.workloads.iter().collect()) };
    let known = board.workloads.iter().map(|workload| workload.name).collect::<Vec<_>>().join(", ");
    let workload = board.workload(name);
    Ok(vec![
        workload.with_context(|| format!("--workload {name}: unknown for {}; expected one of {known}", board.name))?,
    ])
}

/// The pipeline of the spans on the command line.
fn own(args: &SimPipelineArgs) -> anyhow::Result<Option<Pipeline>> {
    let (Some(pre), Some(hw), Some(post), Some(chunk)) = (args.pre, args.hw, args.post, args.chunk) else {
        return Ok(None);
    };
    Ok(Some(Pipeline::new(Spans { pre, hw, post }, chunk)))
}

fn changed(args: &SimPipelineArgs, pipeline: Pipeline) -> Pipeline {
    let engine = args.cqe.map(|name| match name {
        CqEngineName::Hardware => CqEngine::Hardware,
        CqEngineName::Software => CqEngine::Software,
        CqEngineName::None => CqEngine::None,
    });
    Pipeline {
        depth: args.depth.unwrap_or(pipeline.depth),
        cores: args.cores.unwrap_or(pipeline.cores),
        engine: engine.unwrap_or(pipeline.engine),
        serial: args.serial.unwrap_or(pipeline.serial),
        gap: args.gap.unwrap_or(pipeline.gap),
        ..pipeline
    }
}
