//! An order to stop, and the reply to its sender.

use std::convert::Infallible;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The channels of the outcome and of the sender's disconnect.
type AskerEnds = (Sender<Result<(), String>>, Receiver<Infallible>);

/// Somebody wants the server to end.
#[derive(Debug, Default)]
pub struct StopOrder {
    /// The channel of the outcome, and the one that closes after the sender's client has read it. Absent: there is no
    /// sender.
    asker: Option<AskerEnds>,
}

/// The side of an order that waits for the outcome.
#[derive(Debug)]
pub(super) struct Asker {
    outcome: Receiver<Result<(), String>>,
    _answered: Sender<Infallible>,
}

impl StopOrder {
    /// An order of a client that waits for the outcome.
    pub(super) fn asked() -> (Self, Asker) {
        let ((send, outcome), (answered, hung_up)) = (channel(), channel());
        (Self { asker: Some((send, hung_up)) }, Asker { outcome, _answered: answered })
    }

    /// Reports that everything has ended, or the reason why it continues. Returns after the client's reply is written.
    pub fn answer(self, outcome: Result<(), String>) {
        let Some((send, hung_up)) = self.asker else { return };
        if send.send(outcome).is_ok() {
            // Nothing is ever sent: the channel closes when the answer is written or the client is gone.
            let _ = hung_up.recv();
        }
    }
}

impl Asker {
    /// Waits for the outcome; an order that no thread received means that the server has ended.
    pub(super) fn outcome(&self) -> Result<(), String> {
        self.outcome.recv().unwrap_or(Ok(()))
    }
}
