//! `plan hwpart`: the effects of hardware partitioning. Nothing is sent to the card.

use emmc_analysis::hwpart::{HwPartPlan, LayoutRequest, plan};

use crate::CommandResult;
use crate::cli::{HwpartArgs, SavedForm};
use crate::exit::Exit;
use crate::output::{Output, json};
use crate::save::deliver;
use crate::source;

pub(crate) const SCHEMA: &str = "emmclab.plan-hwpart/1";

pub(crate) fn run(args: &HwpartArgs, output: &mut Output) -> CommandResult {
    let request = request(args)?;
    let card = source::open(&args.source)?;
    let plan = plan(&card, &request);
    let to_stdout = args.save.output.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if let Some(path) = &args.save.output {
        let content = match SavedForm::of(path, SavedForm::Json) {
            SavedForm::Json => json(SCHEMA, &plan)? + "\n",
            #[cfg(feature = "html")]
            SavedForm::Html => crate::output::html(&emmc_report::present::hwpart_plan(&plan)),
        };
        deliver(output, path, &content, args.save.force, &args.source.files())?;
    }
    if !to_stdout {
        output.print(SCHEMA, &plan, emmc_report::present::hwpart_plan)?;
    }
    Ok(exit(&plan))
}

fn exit(plan: &HwPartPlan) -> Exit {
    if plan.ok { Exit::Good } else { Exit::Refused }
}

fn request(args: &HwpartArgs) -> anyhow::Result<LayoutRequest> {
    let request = LayoutRequest::new(args.enh_user, args.gp.iter().copied(), args.wrrel)?;
    let asked = request.enh_user.is_some() || request.gp.iter().any(Option::is_some) || request.wrrel.is_some();
    anyhow::ensure!(asked, "nothing to plan: give --enh-user, --gp or --wrrel");
    Ok(request)
}
