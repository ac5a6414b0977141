//! `serve`: a virtual card as a live device, until a stop request.

mod security;

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use anyhow::{Context, anyhow, ensure};
use emmc_report::{Document, KeyValue};
use emmc_serve::block::{Block, Export};
use emmc_serve::control::{Control, ControlServer, StopOrder};
use emmc_serve::fuse::Mounted;
use emmc_serve::layer::{self, Faults, Stats};
use emmc_serve::nbd::{self, Listen, NbdOptions, NbdServer};
use emmc_serve::sdhci::HostFaults;
use emmc_serve::served::{Idle, Served, ServedOptions};
use emmc_serve::store::SOCKET_FILE;
use emmc_serve::uml::{self, UmlOptions, UmlServer};
use emmc_serve::vfio_user::{self, VfioUserOptions, VfioUserServer};
use emmc_serve::{fuse, pci};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::CommandResult;
use crate::cli::{ControllerArg, ServeArgs};
use crate::exit::Exit;
use crate::output::Output;
use crate::save;
use crate::virtual_card::folder;

pub(crate) const SCHEMA: &str = "emmclab.serve/1";

/// What `serve --json` prints once it serves.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Serving {
    /// The card's folder, as named.
    card: String,
    /// The control socket, for `sim ctl`.
    control: String,
    /// Its addresses.
    fronts: Vec<Front>,
    /// How many times slower than real time the card's clock runs.
    dilation: u32,
    /// Whether requests take the simulated time.
    delays: bool,
    /// Whether the disk of the card's folder is full: reads succeed, writes fail until there is space.
    waits_for_room: bool,
}

/// One way to reach the card.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Front {
    /// `vfio-user`, `uml`, `nbd`, `fuse` or `loop`.
    kind: &'static str,
    /// A socket, an address, a file or a device.
    at: String,
    /// The area of a file or a device; absent for all areas.
    #[serde(skip_serializing_if = "Option::is_none")]
    area: Option<String>,
    /// The name of each area for NBD clients.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exports: Vec<NbdExport>,
    /// What a User-Mode Linux is started with; absent for other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_parameters: Option<String>,
}

/// An area as NBD clients name it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct NbdExport {
    /// Its name: `user`, `boot0`, `boot1`, `gp1` to `gp4`.
    area: String,
    /// Its URI, e.g. `nbd://127.0.0.1:10809/user`; with TLS `nbds://`.
    uri: String,
}

impl Front {
    fn new(kind: &'static str, at: impl ToString) -> Self {
        Self { kind, at: at.to_string(), area: None, exports: Vec::new(), kernel_parameters: None }
    }

    fn of_area(kind: &'static str, area: &str, at: &Path) -> Self {
        Self { area: Some(area.into()), ..Self::new(kind, at.display()) }
    }
}

/// The running fronts; dropped in this order.
#[derive(Default)]
struct Fronts {
    vfio_user: Option<VfioUserServer>,
    uml: Option<UmlServer>,
    nbd: Vec<NbdServer>,
    fuse: Option<Mounted>,
    list: Vec<Front>,
}

impl Fronts {
    fn start(
        args: &ServeArgs,
        served: &Arc<Served>,
        block: &Arc<dyn Block>,
        faults: &HostFaults,
    ) -> anyhow::Result<Self> {
        let mut fronts = Self::default();
        if let Some(socket) = &args.vfio_user {
            let identity = identity(args.controller);
            let options = VfioUserOptions {
                identity,
                power_follows_client: args.power_follows_client,
                record: args.record.clone(),
                negotiation: None,
            };
            fronts.vfio_user = Some(vfio_user::serve(Arc::clone(served), faults.clone(), socket, options)?);
            fronts.list.push(Front::new("vfio-user", socket.display()));
        }
        if let Some(folder) = &args.uml {
            let identity = identity(args.controller);
            let options = UmlOptions {
                identity,
                power_follows_client: args.power_follows_client,
                accesses: args.accesses.clone(),
                record: args.record.clone(),
                mailbox: args.mailbox.clone(),
                watch: None,
            };
            let server = uml::serve(Arc::clone(served), faults.clone(), folder, options)?;
            let kernel_parameters = Some(server.kernel_parameters());
            fronts.list.push(Front { kernel_parameters, ..Front::new("uml", folder.display()) });
            fronts.uml = Some(server);
        }
        let options = NbdOptions { tls: security::tls(args)?, idle: args.nbd_idle, ..NbdOptions::default() };
        for address in &args.nbd {
            let listen = Listen::parse(address).map_err(|what| anyhow!("--nbd {what}"))?;
            security::warn(&listen, options.tls.as_deref());
            let server = nbd::serve_with(Arc::clone(block), &listen, options.clone())?;
            let (local, has_tls) = (server.local(), options.tls.is_some());
            let export = |export: Export| NbdExport { uri: local.uri(&export.name, has_tls), area: export.name };
            let exports = block.exports().into_iter().map(export).collect();
            fronts.list.push(Front { exports, ..Front::new("nbd", local) });
            fronts.nbd.push(server);
        }
        if let Some(folder) = &args.fuse {
            let mut mounted = fuse::mount(Arc::clone(block), folder)?;
            for export in block.exports() {
                fronts.list.push(Front::of_area("fuse", &export.name, &mounted.file(&export.name)));
            }
            if args.attach_loop {
                for (area, device) in mounted.attach_all()? {
                    fronts.list.push(Front::of_area("loop", &area, &device));
                }
            }
            fronts.fuse = Some(mounted);
        }
        Ok(fronts)
    }

    /// Stops the fronts; a mount that is in use continues.
    fn stop(&mut self) -> anyhow::Result<()> {
        if let Some(mounted) = &mut self.fuse {
            mounted.stop().context("still serving")?;
        }
        self.fuse = None;
        self.vfio_user = None;
        self.uml = None;
        self.nbd.clear();
        Ok(())
    }
}

pub(crate) fn run(args: &ServeArgs, output: &mut Output) -> CommandResult {
    let has_front = args.vfio_user.is_some() || args.uml.is_some() || !args.nbd.is_empty() || args.fuse.is_some();
    ensure!(has_front, "name at least one of --vfio-user, --uml, --nbd and --fuse");
    // The parser forgets what an option requires where that conflicts with another that is given.
    for (option, is_given) in [("--accesses", args.accesses.is_some()), ("--mailbox", args.mailbox.is_some())] {
        ensure!(!is_given || args.uml.is_some(), "{option}: only --uml has it");
    }
    security::check(args)?;
    let logs = args.layer.iter().filter_map(|layer| layer.strip_prefix("log:file=")).map(Path::new);
    for path in logs.chain(args.accesses.as_deref()).chain(args.record.as_deref()) {
        save::refuse_device(path)?;
    }
    let card = folder(&args.card);
    let served = Arc::new(if args.uml.is_some() {
        Served::open_driven(card)?
    } else {
        Served::open(card, ServedOptions { delays: !args.no_delay, dilation: args.dilate })?
    });
    let (stop, stopped) = mpsc::channel();
    listen_to_signals(stop.clone())?;
    let result = serve(args, &served, stop, &stopped, output);
    let finished = served.finish();
    result?;
    finished?;
    Ok(Exit::Good)
}

fn serve(
    args: &ServeArgs,
    served: &Arc<Served>,
    stop: mpsc::Sender<StopOrder>,
    stopped: &mpsc::Receiver<StopOrder>,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut block: Arc<dyn Block> = Arc::clone(served) as Arc<dyn Block>;
    for layer in &args.layer {
        block = layer::parse(layer, block)?;
    }
    let faults = Arc::new(Faults::new(block));
    let stats = Arc::new(Stats::new(Arc::clone(&faults) as Arc<dyn Block>, Arc::clone(served)));
    let block = Arc::clone(&stats) as Arc<dyn Block>;
    let socket: PathBuf = folder(&args.card).join(SOCKET_FILE);
    let host_faults = HostFaults::default();
    let control = Control { served: Arc::clone(served), faults, host_faults: host_faults.clone(), stats, stop };
    let _control = ControlServer::start(&socket, control).with_context(|| socket.display().to_string())?;
    let mut fronts = Fronts::start(args, served, &block, &host_faults)?;
    // On a driven clock the work of an idle card is an event among the others.
    let _idle = (!served.clock_now().is_driven()).then(|| Idle::start(served));
    let serving = Serving {
        card: args.card.display().to_string(),
        control: socket.display().to_string(),
        fronts: std::mem::take(&mut fronts.list),
        dilation: args.dilate,
        delays: !args.no_delay,
        waits_for_room: served.waits_for_room(),
    };
    output.print(SCHEMA, &serving, present)?;
    while let Ok(order) = stopped.recv() {
        match fronts.stop() {
            Ok(()) => {
                order.answer(Ok(()));
                break;
            }
            Err(error) => {
                output.error(&format!("{error:#}"));
                order.answer(Err(format!("{error:#}")));
            }
        }
    }
    Ok(())
}

fn identity(controller: ControllerArg) -> pci::Identity {
    match controller {
        ControllerArg::Cqe => pci::Identity::Gl9763e,
        ControllerArg::NoCqe => pci::Identity::Gl9763eWithoutQueue,
        ControllerArg::Hs200 => pci::Identity::Generic,
    }
}

/// The first of these signals stops the server cleanly.
fn listen_to_signals(stop: mpsc::Sender<StopOrder>) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals")?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if stop.send(StopOrder::default()).is_err() {
                break;
            }
        }
    });
    Ok(())
}

fn present(serving: &Serving) -> Document {
    let mut document = Document::new(format!("Serving virtual card {}", serving.card));
    let mut lines: Vec<KeyValue> = serving.fronts.iter().flat_map(front_lines).collect();
    lines.push(KeyValue::new("control", serving.control.as_str()));
    let is_simulated = serving.fronts.iter().any(|front| front.kernel_parameters.is_some());
    let times = match (serving.delays, serving.dilation) {
        _ if is_simulated => "the machine's, which is simulated".to_owned(),
        (false, _) => "requests complete at once".to_owned(),
        (true, 1) => "requests take the simulated time".to_owned(),
        (true, dilation) => format!("requests take the simulated time, {dilation} times slower"),
    };
    lines.push(KeyValue::new("time", times));
    if serving.waits_for_room {
        lines.push(KeyValue::new("disk", "full: reads succeed, writes fail until there is space"));
    }
    let section = document.section("fronts", "Fronts");
    section.push(lines);
    section.paragraph(format!("Ctrl-C or `emmclab sim ctl {} stop` saves the card and ends.", serving.card));
    document
}

/// One line for each address.
fn front_lines(front: &Front) -> Vec<KeyValue> {
    let named = |area: &str| format!("{} {area}", front.kind);
    match &front.area {
        Some(area) => vec![KeyValue::new(named(area), front.at.as_str())],
        None if front.exports.is_empty() => {
            let parameters = front.kernel_parameters.iter().map(|text| KeyValue::new("kernel", text.as_str()));
            std::iter::once(KeyValue::new(front.kind, front.at.as_str())).chain(parameters).collect()
        }
        None => front.exports.iter().map(|export| KeyValue::new(named(&export.area), export.uri.as_str())).collect(),
    }
}
