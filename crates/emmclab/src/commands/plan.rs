//! `plan`: the effects of a change of the configuration. Nothing is sent to the card.

use emmc_analysis::hwpart::{self, HwPartPlan, LayoutRequest};
use emmc_analysis::plan::{PLAN_SCHEMA, Plan, Request, boot_size, of_hwpart, plan};
use emmc_port::CardData;
use emmc_regs::ext_csd::reg;
use serde::Serialize;

use crate::CommandResult;
use crate::cli::{
    AwarenessArg, HwpartArgs, PinArg, PlanCommand, RemovalArg, SaveArgs, SavedForm, SourceArgs, StateArg, WpBootArg,
};
use crate::exit::Exit;
use crate::output::{Output, json};
use crate::save::deliver;
use crate::source;

pub(crate) const HWPART_SCHEMA: &str = "emmclab.plan-hwpart/1";
pub(crate) const SCHEMA: &str = PLAN_SCHEMA;
pub(crate) const BOOT_SIZE_SCHEMA: &str = "emmclab.plan-boot-size/1";

/// A plan of hardware partitions as printed and saved: its own keys, and the plan that `apply` reads.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HwPartDocument {
    #[serde(flatten)]
    hwpart: HwPartPlan,
    /// The same in the form of every plan.
    plan: Embedded,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Embedded {
    /// `emmclab.plan/1`.
    schema: &'static str,
    #[serde(flatten)]
    plan: Plan,
}

pub(crate) fn run(command: &PlanCommand, output: &mut Output) -> CommandResult {
    let (source, save, request) = match command {
        PlanCommand::Hwpart(args) => return hwpart(&args.source, &args.save, &layout_request(args)?, output),
        PlanCommand::Wrrel(args) => {
            let request = LayoutRequest::new(None, [], Some(args.wanted.wrrel))?;
            return hwpart(&args.source, &args.save, &request, output);
        }
        PlanCommand::Boot(args) => {
            let wanted = &args.wanted;
            let card = source::open(&args.source)?;
            let from = match wanted.switch {
                true => Some(other_boot_area(&card)?),
                false => wanted.from.map(|from| from.code()),
            };
            let (ack, keep) = (wanted.ack.map(Into::into), wanted.keep.map(Into::into));
            let request = Request::Boot { from, ack, width: wanted.width, mode: wanted.mode.map(Into::into), keep };
            return finish(&args.source, &args.save, &plan(&card, &request), output);
        }
        PlanCommand::BootSize(args) => {
            let plan = boot_size(&source::open(&args.source)?, args.wanted.boot, args.wanted.rpmb);
            let present = emmc_report::present::boot_size;
            deliver_plan(BOOT_SIZE_SCHEMA, &plan, (&args.source, &args.save), output, present)?;
            return Ok(exit(plan.ok));
        }
        PlanCommand::Bkops(args) => {
            let request = Request::Bkops { auto: args.wanted.auto.map(Into::into), manual: args.wanted.manual };
            (&args.source, &args.save, request)
        }
        PlanCommand::Cache(args) => (&args.source, &args.save, Request::Cache(args.wanted.cache.into())),
        PlanCommand::Hwreset(args) => (&args.source, &args.save, Request::HwReset(args.wanted.pin == PinArg::Enable)),
        PlanCommand::Wp(args) => (&args.source, &args.save, wp_request(&args.wanted)?),
        PlanCommand::SecureRemoval(args) => {
            let kind = match args.wanted.kind {
                RemovalArg::Erase => 0,
                RemovalArg::Overwrite => 1,
                RemovalArg::OverwriteRandom => 2,
                RemovalArg::Vendor => 3,
            };
            (&args.source, &args.save, Request::SecureRemoval(kind))
        }
        PlanCommand::NativeSectors(args) => (&args.source, &args.save, Request::NativeSectors),
        PlanCommand::ProductionState(args) => {
            let state = args.wanted.state.map(|state| match state {
                StateArg::Normal => 0,
                StateArg::PreSolderingWrites => 1,
                StateArg::PreSolderingPostWrites => 2,
                StateArg::AutoPreSoldering => 3,
            });
            let mode = |mode| (mode == AwarenessArg::Manual, mode == AwarenessArg::Auto);
            (&args.source, &args.save, Request::ProductionState { state, enable: args.wanted.enable.map(mode) })
        }
        PlanCommand::Set(args) => (&args.source, &args.save, Request::Set(args.wanted.assignments.clone())),
    };
    let card = source::open(source)?;
    finish(source, save, &plan(&card, &request), output)
}

fn finish(source: &SourceArgs, save: &SaveArgs, plan: &Plan, output: &mut Output) -> CommandResult {
    deliver_plan(SCHEMA, plan, (source, save), output, emmc_report::present::plan)?;
    Ok(exit(plan.ok))
}

fn hwpart(source: &SourceArgs, save: &SaveArgs, request: &LayoutRequest, output: &mut Output) -> CommandResult {
    let card = source::open(source)?;
    let hwpart = hwpart::plan(&card, request);
    let plan = Embedded { schema: SCHEMA, plan: of_hwpart(&hwpart, &card) };
    let document = HwPartDocument { hwpart, plan };
    let present = |document: &HwPartDocument| emmc_report::present::hwpart_plan(&document.hwpart);
    deliver_plan(HWPART_SCHEMA, &document, (source, save), output, present)?;
    Ok(exit(document.hwpart.ok))
}

fn deliver_plan<T: Serialize>(
    schema: &'static str,
    body: &T,
    (source, save): (&SourceArgs, &SaveArgs),
    output: &mut Output,
    present: impl Fn(&T) -> emmc_report::Document,
) -> anyhow::Result<()> {
    if let Some(path) = &save.output {
        let content = match SavedForm::of(path, SavedForm::Json) {
            SavedForm::Json => json(schema, body)? + "\n",
            #[cfg(feature = "html")]
            SavedForm::Html => crate::output::html(&present(body)),
        };
        deliver(output, path, &content, save.force, &source.files())?;
    }
    if save.output.as_ref().is_some_and(|path| path.as_os_str() == "-") {
        return Ok(());
    }
    output.print(schema, body, present)
}

fn exit(ok: bool) -> Exit {
    if ok { Exit::Good } else { Exit::Refused }
}

fn layout_request(args: &HwpartArgs) -> anyhow::Result<LayoutRequest> {
    let request = LayoutRequest::new(args.enh_user, args.gp.iter().copied(), args.wrrel)?;
    let asked = request.enh_user.is_some() || request.gp.iter().any(Option::is_some) || request.wrrel.is_some();
    anyhow::ensure!(asked, "nothing to plan: give --enh-user, --gp or --wrrel");
    Ok(request)
}

/// The A/B switch: needs to know which one it is now.
fn other_boot_area(card: &CardData) -> anyhow::Result<u8> {
    let config = card.ext_csd.as_ref().and_then(|ext_csd| ext_csd.byte(reg::PARTITION_CONFIG));
    match config.map(|config| config >> 3 & 7) {
        Some(1) => Ok(2),
        Some(2) => Ok(1),
        Some(other) => anyhow::bail!(
            "--switch: BOOT_PARTITION_ENABLE is {other}: the card boots from no boot area now; use --from"
        ),
        None => anyhow::bail!("--switch: the source does not have PARTITION_CONFIG; use --from"),
    }
}

fn wp_request(args: &crate::cli::WpArgs) -> anyhow::Result<Request> {
    use emmc_analysis::plan::Protection;
    let protection = args.protection;
    let Some(boot) = args.boot else {
        let range = args.user.ok_or_else(|| anyhow::anyhow!("nothing to protect: give --boot or --user"))?;
        return Ok(Request::WpUser { range, protection });
    };
    anyhow::ensure!(
        protection > Protection::Temporary,
        "--boot: a boot area has no {} protection; expected power-on or permanent",
        protection.word()
    );
    let area = match boot {
        WpBootArg::Both => None,
        WpBootArg::Boot1 => Some(0),
        WpBootArg::Boot2 => Some(1),
    };
    Ok(Request::WpBoot { area, protection })
}
