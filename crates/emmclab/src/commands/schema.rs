//! `schema`: JSON Schemas, generated from the serialised types.

use emmc_analysis::comparison::Comparison;
use emmc_analysis::registers::Registers;
use emmc_port::Snapshot;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::health::HealthDocument;
use crate::CommandResult;
use crate::cli::{DocumentName, SchemaArgs};
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &SchemaArgs, output: &mut Output) -> CommandResult {
    output.line(&serde_json::to_string_pretty(&schema(args.document))?)?;
    Ok(Exit::Good)
}

fn schema(document: DocumentName) -> Value {
    #[cfg(feature = "sim")]
    use super::sim;
    use super::{check, diff, list, plan, show, study};
    match document {
        DocumentName::List => enveloped::<emmc_linux::CardList>(list::SCHEMA),
        DocumentName::Show => enveloped::<Registers>(show::SCHEMA),
        DocumentName::Diff => enveloped::<Comparison>(diff::SCHEMA),
        DocumentName::Health => enveloped::<HealthDocument>(super::health::SCHEMA),
        DocumentName::Check => enveloped::<check::CheckDocument>(check::SCHEMA),
        DocumentName::Sample => plain::<emmc_analysis::sample::Sample>().to_value(),
        DocumentName::PlanHwpart => enveloped::<plan::HwPartDocument>(plan::HWPART_SCHEMA),
        DocumentName::PlanBootSize => enveloped::<emmc_analysis::plan::BootSizePlan>(plan::BOOT_SIZE_SCHEMA),
        DocumentName::Plan => enveloped::<emmc_analysis::plan::Plan>(plan::SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::Apply => enveloped::<super::apply::ApplyDocument>(super::apply::SCHEMA),
        #[cfg(feature = "clone")]
        DocumentName::Clone => enveloped::<super::clone::CloneDocument>(super::clone::SCHEMA),
        #[cfg(feature = "clone")]
        DocumentName::CloneRestore => enveloped::<super::clone::PutDocument>(super::clone::PUT_SCHEMA),
        #[cfg(feature = "clone")]
        DocumentName::Erase => enveloped::<super::erase::EraseDocument>(super::erase::SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::Rpmb => enveloped::<super::rpmb::RpmbDocument>(super::rpmb::SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::Ffu => enveloped::<super::ffu::FfuDocument>(super::ffu::SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::Lock => enveloped::<super::lock::LockDocument>(super::lock::SCHEMA),
        DocumentName::Study => enveloped::<study::StudyDocument>(study::SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::Bench => enveloped::<super::bench::BenchDocument>(super::bench::SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::Restore => enveloped::<super::bench::restore::Restored>(super::bench::restore::SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::Suites => enveloped::<super::bench::SuiteList>(super::bench::LIST_SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::Compare => enveloped::<emmc_workload::compare::Comparison>(super::compare::SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::Import => enveloped::<emmc_workload::import::SavedResult>(super::compare::IMPORT_SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::References => enveloped::<super::compare::ReferenceList>(super::compare::LIST_SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::Probe => enveloped::<super::probe::ProbeDocument>(super::probe::SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::Trim => enveloped::<emmc_analysis::trim::TrimStatus>(super::trim::SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::TrimRun => enveloped::<super::trim::TrimRun>(super::trim::RUN_SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::TrimAdvise => enveloped::<super::trim::TrimAdvised>(super::trim::ADVISE_SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::AdviseSystem => enveloped::<emmc_analysis::advise::SystemAdvice>(super::advise::system::SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::AdviseWorth => enveloped::<emmc_analysis::advise::Worth>(super::advise::worth::SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::Bus => enveloped::<emmc_analysis::bus::BusReport>(super::bus::SCHEMA),
        #[cfg(feature = "bench")]
        DocumentName::Trust => enveloped::<emmc_analysis::trust::Trust>(super::trust::SCHEMA),
        #[cfg(feature = "twin")]
        DocumentName::AdviseLayout => enveloped::<super::advise::layout::AdvisedLayout>(super::advise::layout::SCHEMA),
        #[cfg(feature = "twin")]
        DocumentName::TwinFit => enveloped::<emmc_twin::Twin>(super::twin::FIT_SCHEMA),
        #[cfg(feature = "twin")]
        DocumentName::TwinCheck => enveloped::<emmc_twin::Checked>(super::twin::CHECK_SCHEMA),
        #[cfg(feature = "twin")]
        DocumentName::TwinBaseline => enveloped::<emmc_twin::Baseline>(super::twin::BASELINE_SCHEMA),
        #[cfg(feature = "twin")]
        DocumentName::AdvisePart => enveloped::<super::advise::part::AdvisedPart>(super::advise::part::SCHEMA),
        #[cfg(feature = "twin")]
        DocumentName::SimWhatIf => enveloped::<sim::what_if::SimWhatIf>(sim::what_if::SCHEMA),
        #[cfg(feature = "twin")]
        DocumentName::SimLife => enveloped::<sim::life::SimLife>(sim::life::SCHEMA),
        #[cfg(feature = "trace")]
        DocumentName::TraceAnalyse => enveloped::<emmc_trace::result::Analysis>(super::trace::SCHEMA),
        #[cfg(feature = "trace")]
        DocumentName::TraceBoot => enveloped::<super::trace::boot::AtBoot>(super::trace::boot::SCHEMA),
        #[cfg(feature = "trace")]
        DocumentName::TraceCompare => enveloped::<emmc_workload::spans::SpanComparison>(super::trace::compare::SCHEMA),
        #[cfg(feature = "trace")]
        DocumentName::TraceExport => enveloped::<super::trace::export::Exported>(super::trace::export::SCHEMA),
        #[cfg(feature = "trace")]
        DocumentName::TraceOverhead => enveloped::<super::trace::overhead::Overhead>(super::trace::overhead::SCHEMA),
        #[cfg(feature = "trace")]
        DocumentName::TraceRecord => enveloped::<super::trace::RecordedFile>(super::trace::RECORD_SCHEMA),
        #[cfg(feature = "trace")]
        DocumentName::TraceWho => enveloped::<super::trace::who::WhoDocument>(super::trace::who::SCHEMA),
        #[cfg(feature = "sim")]
        DocumentName::SimProfiles => enveloped::<sim::profiles::ProfileList>(sim::profiles::SCHEMA),
        #[cfg(feature = "sim")]
        DocumentName::SimCreate => enveloped::<sim::create::Created>(sim::create::SCHEMA),
        #[cfg(feature = "serve")]
        DocumentName::LabRun => enveloped::<super::lab::run::LabRun>(super::lab::run::SCHEMA),
        #[cfg(feature = "serve")]
        DocumentName::LabSweep => enveloped::<super::lab::sweep::LabSweep>(super::lab::sweep::SCHEMA),
        #[cfg(feature = "serve")]
        DocumentName::LabCalibrate => enveloped::<super::lab::calibrate::LabCalibration>(super::lab::calibrate::SCHEMA),
        #[cfg(feature = "sim")]
        DocumentName::SimRun => enveloped::<sim::run::SimRun>(sim::run::SCHEMA),
        #[cfg(feature = "sim")]
        DocumentName::SimCheck => enveloped::<sim::check::Checked>(sim::check::SCHEMA),
        #[cfg(feature = "sim")]
        DocumentName::SimInfo => enveloped::<emmc_card::condition::Internals>(sim::info::SCHEMA),
        #[cfg(feature = "sim")]
        DocumentName::SimPipeline => enveloped::<emmc_host::PipelineResult>(sim::pipeline::SCHEMA),
        #[cfg(feature = "sim")]
        DocumentName::SimPowerCut => enveloped::<sim::power_cut::PowerCuts>(sim::power_cut::SCHEMA),
        #[cfg(feature = "serve")]
        DocumentName::SimCtl => enveloped::<sim::ctl::Answer>(sim::ctl::SCHEMA),
        #[cfg(feature = "serve")]
        DocumentName::Serve => enveloped::<super::serve::Serving>(super::serve::SCHEMA),
        DocumentName::Snapshot => plain::<Snapshot>().to_value(),
    }
}

/// The schema of the output of `--json`: every field that is always written is required.
fn plain<T: JsonSchema>() -> Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    SchemaGenerator::new(settings).into_root_schema_for::<T>()
}

/// The same with the first two keys of every document.
fn enveloped<T: JsonSchema>(name: &'static str) -> Value {
    let mut schema = plain::<T>().to_value();
    if let Some(object) = schema.as_object_mut() {
        let properties = object.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            properties.insert("schema".into(), json!({"const": name}));
            properties
                .insert("tool".into(), json!({"type": "string", "description": "Name and version of the program."}));
        }
        if let Some(required) = object.entry("required").or_insert_with(|| json!([])).as_array_mut() {
            required.splice(0..0, [json!("schema"), json!("tool")]);
        }
    }
    schema
}
