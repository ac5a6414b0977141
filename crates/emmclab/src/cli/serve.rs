//! The arguments of `serve` and of `sim ctl`: a virtual card as a live device.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use emmc_units::{Bytes, Size};

/// The controller that a card is served as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ControllerArg {
    /// Genesys Logic GL9763E: HS400, command queueing
    Cqe,
    /// The same controller without command queueing
    NoCqe,
    /// A plain controller: four lines, HS200
    Hs200,
}

/// TLS for NBD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TlsArg {
    /// No TLS
    Off,
    /// Clients may use it
    On,
    /// Clients without it are refused
    Require,
}

/// A kind of request to a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindArg {
    Read,
    Write,
    Zero,
    Trim,
    Flush,
}

/// An error on the lines between host and card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostErrorArg {
    /// The command does not reach the card
    CommandTimeout,
    /// The response to the command arrives corrupted
    CommandCrc,
    /// The data do not arrive
    DataTimeout,
    /// The first block arrives corrupted
    DataCrc,
    /// The card's response reports an error
    Status,
}

#[derive(Args, Debug)]
#[group(id = "fronts", multiple = true)]
pub(crate) struct ServeArgs {
    /// Folder of a card made by `sim create`
    pub(crate) card: PathBuf,
    /// Serve it as a PCI SD host controller to a virtual machine, over vfio-user at this socket
    #[arg(long, value_name = "SOCKET", group = "machine")]
    pub(crate) vfio_user: Option<PathBuf>,
    /// Serve it the same way to a User-Mode Linux, in simulated time, at two sockets in this folder
    #[arg(long, value_name = "DIR", group = "machine", conflicts_with_all = ["nbd", "fuse", "layer"])]
    pub(crate) uml: Option<PathBuf>,
    /// The controller that the virtual machine sees
    #[arg(long, value_enum, default_value_t = ControllerArg::Cqe, requires = "machine")]
    pub(crate) controller: ControllerArg,
    /// Power the card off when the virtual machine disconnects, and on when one connects
    #[arg(long, requires = "machine")]
    pub(crate) power_follows_client: bool,
    /// Write each register access of a User-Mode Linux with its time to this file
    #[arg(long, value_name = "FILE", requires = "uml")]
    pub(crate) accesses: Option<PathBuf>,
    /// Write what became of each request, and a summary of each run of a User-Mode Linux, to files in this folder
    #[arg(long, value_name = "DIR", requires = "machine")]
    pub(crate) record: Option<PathBuf>,
    /// Pass lines that a User-Mode Linux writes to the controller's mailbox to this socket, and answers back
    #[arg(long, value_name = "SOCKET", requires = "uml")]
    pub(crate) mailbox: Option<PathBuf>,
    /// Serve its areas as network block devices at HOST:PORT, PORT or a socket path (may be repeated)
    #[arg(long, value_name = "ADDRESS|SOCKET")]
    pub(crate) nbd: Vec<String>,
    /// Disconnect NBD clients that send nothing for this long while they wait for no reply: 10min [default: never]
    #[arg(long, value_name = "TIME", requires = "nbd", value_parser = idle)]
    pub(crate) nbd_idle: Option<Duration>,
    /// Whether NBD clients can or must use TLS [default: require with --tls-certificates or --tls-psk, else off]
    #[arg(long, value_enum, requires = "nbd")]
    pub(crate) tls: Option<TlsArg>,
    /// TLS with server-cert.pem and server-key.pem of this folder; ca-cert.pem for --tls-verify-peer
    #[arg(long, value_name = "DIR", requires = "nbd", conflicts_with = "tls_psk")]
    pub(crate) tls_certificates: Option<PathBuf>,
    /// Refuse clients without a certificate that ca-cert.pem signed, or that ca-crl.pem revokes
    #[arg(long, requires = "tls_certificates")]
    pub(crate) tls_verify_peer: bool,
    /// TLS with the keys of this file instead: lines USER:HEXKEY, as psktool makes them
    #[arg(long, value_name = "FILE", requires = "nbd")]
    pub(crate) tls_psk: Option<PathBuf>,
    /// Serve its areas as files in this folder, with FUSE
    #[arg(long, value_name = "DIR")]
    pub(crate) fuse: Option<PathBuf>,
    /// Attach a loop device to each of these files
    #[arg(long = "loop", requires = "fuse")]
    pub(crate) attach_loop: bool,
    /// Run the card's clock this many times slower, for slow clients; reported times are in the card's clock
    #[arg(long, value_name = "TIMES", default_value_t = 1, conflicts_with = "uml",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) dilate: u32,
    /// Complete requests at once instead of after the simulated time
    #[arg(long, conflicts_with_all = ["dilate", "uml"])]
    pub(crate) no_delay: bool,
    /// Add a layer between card and block devices: delay, fault, fake, drop, volatile or log, with options as
    /// :KEY=VALUE,… (may be repeated)
    #[arg(long, value_name = "LAYER")]
    pub(crate) layer: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct SimCtlArgs {
    /// Folder of a card that is being served
    pub(crate) card: PathBuf,
    /// Do it when the clock of the client shows this, since its start: 1.5s, 20ms (with serve --uml, and inside QEMU)
    #[arg(long, value_name = "TIME", global = true, value_parser = nanoseconds)]
    pub(crate) at: Option<u64>,
    /// Do it so much later by that clock
    #[arg(long = "in", value_name = "TIME", global = true, value_parser = nanoseconds, conflicts_with = "at")]
    pub(crate) later: Option<u64>,
    #[command(subcommand)]
    pub(crate) order: CtlOrder,
}

/// A time of at least a second.
fn idle(text: &str) -> Result<Duration, String> {
    super::known::time(text).and_then(|time| match time {
        time if time < Duration::from_secs(1) => Err("expected at least 1s".into()),
        time => Ok(time),
    })
}

/// A time with its unit, in nanoseconds.
fn nanoseconds(text: &str) -> Result<u64, String> {
    u64::try_from(super::known::time(text)?.as_nanos()).map_err(|_| "expected 0s to 584 years".into())
}

/// Which of the requests or commands that match fail.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WhichArgs {
    /// Let this many pass first
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub(crate) after: u64,
    /// Let this many fail [default: all that follow]
    #[arg(long, value_name = "COUNT")]
    pub(crate) times: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CtlOrder {
    /// Cut the power
    Cut {
        /// Cut at the nth program or erase operation of the flash from now on, instead of at once
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
        at_operation: Option<u64>,
        /// Seed for the moment within that operation and for the damage
        #[arg(long, default_value_t = 0, value_name = "NUMBER", requires = "at_operation")]
        seed: u64,
    },
    /// Switch the power on again
    On,
    /// Assert and release RST_n
    Reset,
    /// Make requests of block devices fail
    Inject {
        /// Only requests of this kind
        #[arg(long, value_enum)]
        kind: Option<KindArg>,
        /// Only in this area: user, boot0, boot1, gp1 to gp4
        #[arg(long)]
        area: Option<String>,
        /// Only requests that touch bytes at or after this place
        #[arg(long, default_value = "0", value_name = "SIZE", value_parser = place)]
        from: u64,
        /// Only requests that touch bytes before this place
        #[arg(long, value_name = "SIZE", value_parser = place)]
        to: Option<u64>,
        #[command(flatten)]
        which: WhichArgs,
    },
    /// Make commands of a host (--vfio-user) fail on the lines to the card
    InjectHost {
        /// What goes wrong
        #[arg(value_enum)]
        error: HostErrorArg,
        /// Only this command
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(..64))]
        command: Option<u8>,
        /// Only while the bus is clocked faster than this: a bus that is not good enough for its mode
        #[arg(long, value_name = "FREQUENCY", value_parser = super::known::frequency)]
        above: Option<u64>,
        /// Of the commands that would fail, only each Nth
        #[arg(long, value_name = "N")]
        every: Option<std::num::NonZeroU64>,
        #[command(flatten)]
        which: WhichArgs,
    },
    /// Remove all injected faults, of requests and of commands
    ClearFaults,
    /// Print the internal state: wear, mapping, open blocks, write amplification
    State,
    /// Set how many times slower than real time the card's clock runs
    Speed {
        /// How many times
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        times: Option<u32>,
        /// Whether requests take the simulated time
        #[arg(long, value_name = "true|false")]
        delays: Option<bool>,
    },
    /// Print the requests that were served, and their lateness
    Stats,
    /// Save the card and end the server
    Stop,
}

/// A place in an area: a size, or a bare number of bytes.
fn place(text: &str) -> Result<u64, String> {
    if let Ok(bytes) = text.parse() {
        return Ok(bytes);
    }
    match text.parse() {
        Ok(Size::Exact(Bytes(bytes))) => Ok(bytes),
        Ok(size) => Err(format!("a place of {size}: expected bytes, e.g. 1MiB")),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_sizes_or_bytes() {
        assert_eq!((place("1MiB"), place("8s"), place("4096")), (Ok(1 << 20), Ok(4096), Ok(4096)));
        assert_eq!(
            (nanoseconds("1.5s"), nanoseconds("20ms"), nanoseconds("7ns")),
            (Ok(1_500_000_000), Ok(20_000_000), Ok(7))
        );
        assert!(nanoseconds("-1s").is_err() && nanoseconds("3").is_err() && nanoseconds("soon").is_err());
        assert!(place("50%").is_err() && place("4kB").is_err() && place("-1").is_err());
    }
}
