//! The arguments of commands that print what follows from the program itself: schemas, completions, manual pages.

use clap::Args;
#[cfg(feature = "schema")]
use clap::ValueEnum;

#[cfg(feature = "schema")]
#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// Which document
    pub(crate) document: DocumentName,
}

#[cfg(feature = "pages")]
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(feature = "pages")]
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// The folder; created if it does not exist
    pub(crate) folder: std::path::PathBuf,
}

/// The documents that `--json` prints.
#[cfg(feature = "schema")]
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DocumentName {
    List,
    Show,
    Snapshot,
    Diff,
    Health,
    Check,
    Sample,
    PlanHwpart,
    PlanBootSize,
    Plan,
    #[cfg(feature = "bench")]
    Apply,
    #[cfg(feature = "clone")]
    Clone,
    #[cfg(feature = "clone")]
    CloneRestore,
    #[cfg(feature = "clone")]
    Erase,
    #[cfg(feature = "bench")]
    Rpmb,
    #[cfg(feature = "bench")]
    Ffu,
    #[cfg(feature = "bench")]
    Lock,
    Study,
    #[cfg(feature = "bench")]
    Bench,
    #[cfg(feature = "bench")]
    Restore,
    #[cfg(feature = "bench")]
    Suites,
    #[cfg(feature = "bench")]
    Compare,
    #[cfg(feature = "bench")]
    Import,
    #[cfg(feature = "bench")]
    References,
    #[cfg(feature = "bench")]
    Probe,
    #[cfg(feature = "bench")]
    Trim,
    #[cfg(feature = "bench")]
    TrimRun,
    #[cfg(feature = "bench")]
    TrimAdvise,
    #[cfg(feature = "bench")]
    AdviseSystem,
    #[cfg(feature = "bench")]
    AdviseWorth,
    #[cfg(feature = "bench")]
    Bus,
    #[cfg(feature = "bench")]
    Trust,
    #[cfg(feature = "twin")]
    AdviseLayout,
    #[cfg(feature = "twin")]
    TwinFit,
    #[cfg(feature = "twin")]
    TwinCheck,
    #[cfg(feature = "twin")]
    TwinBaseline,
    #[cfg(feature = "twin")]
    AdvisePart,
    #[cfg(feature = "twin")]
    SimWhatIf,
    #[cfg(feature = "twin")]
    SimLife,
    #[cfg(feature = "trace")]
    TraceAnalyse,
    #[cfg(feature = "trace")]
    TraceBoot,
    #[cfg(feature = "trace")]
    TraceCompare,
    #[cfg(feature = "trace")]
    TraceExport,
    #[cfg(feature = "trace")]
    TraceOverhead,
    #[cfg(feature = "trace")]
    TraceRecord,
    #[cfg(feature = "trace")]
    TraceWho,
    #[cfg(feature = "sim")]
    SimProfiles,
    #[cfg(feature = "sim")]
    SimCreate,
    #[cfg(feature = "serve")]
    LabRun,
    #[cfg(feature = "serve")]
    LabSweep,
    #[cfg(feature = "serve")]
    LabCalibrate,
    #[cfg(feature = "sim")]
    SimRun,
    #[cfg(feature = "sim")]
    SimCheck,
    #[cfg(feature = "sim")]
    SimInfo,
    #[cfg(feature = "sim")]
    SimPipeline,
    #[cfg(feature = "sim")]
    SimPowerCut,
    #[cfg(feature = "serve")]
    SimCtl,
    #[cfg(feature = "serve")]
    Serve,
}
