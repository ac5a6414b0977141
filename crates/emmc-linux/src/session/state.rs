//! The states of a session and what may follow each.
//!
//! ```text
//! placed -> checked -> consented -> held -> saved -> running -> restoring -> done (restored, or lost)
//!    '---------'-----------'---------'-------'          '-> done (written), if nothing was saved
//!                          '-> done (unwritten): in use, declined, an error, a signal
//! ```
//! Until `running` every error and every signal ends the session with nothing written. From `running` on none of them
//! does: a signal ends the work soon, and what was saved is restored first. Absent on purpose: any system call.

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The target is identified and kept open; nobody has looked who uses it.
    Placed,
    /// It is in no use that the kernel knows.
    Checked,
    /// The user agreed to what will be overwritten, and it is still in no use.
    Consented,
    /// It is open for writing, alone (a device) or locked (a file), and still in no use.
    Held,
    /// What will be overwritten is saved, or nothing is to be saved; it is still in no use.
    Saved,
    /// It is being overwritten.
    Running,
    /// Saved content is being written back.
    Restoring,
    /// Nothing follows.
    Done(End),
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// No byte of the target was written.
    Unwritten,
    /// It was overwritten, and nothing was to be restored.
    Written,
    /// It is as before.
    Restored,
    /// A part of it could not be restored; the content is in the place that the error names.
    Lost,
}

/// What happens to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A look found no use.
    Free,
    /// The user agreed, and another look found no use.
    Agreed,
    /// The target is open for writing, and another look found no use.
    Opened,
    /// What is to be saved is saved, and the last look found no use.
    Kept,
    /// The work begins: from here on the target may be written.
    Began,
    /// The work is over, with or without a result.
    Ended {
        /// Something was saved.
        is_kept: bool,
    },
    /// Everything is written back and compared.
    Whole,
    /// A part could not be written back.
    Partial,
    /// A use, a refusal, an error, or the caller gives up.
    Failed,
    /// A signal.
    Stopped,
}

impl Event {
    /// Every event.
    pub const ALL: [Self; 11] = [
        Self::Free,
        Self::Agreed,
        Self::Opened,
        Self::Kept,
        Self::Began,
        Self::Ended { is_kept: false },
        Self::Ended { is_kept: true },
        Self::Whole,
        Self::Partial,
        Self::Failed,
        Self::Stopped,
    ];
}

impl State {
    /// The state after an event; `None` if the event cannot happen here.
    pub const fn after(self, event: Event) -> Option<Self> {
        Some(match (self, event) {
            (Self::Placed, Event::Free) => Self::Checked,
            (Self::Checked, Event::Agreed) => Self::Consented,
            (Self::Consented, Event::Opened) => Self::Held,
            (Self::Held, Event::Kept) => Self::Saved,
            (Self::Saved, Event::Began) => Self::Running,
            (Self::Running, Event::Ended { is_kept: true }) => Self::Restoring,
            (Self::Running, Event::Ended { is_kept: false }) => Self::Done(End::Written),
            (Self::Restoring, Event::Whole) => Self::Done(End::Restored),
            (Self::Restoring, Event::Partial) => Self::Done(End::Lost),
            // A signal or an error ends the work, which is [`Event::Ended`], and never the restore.
            (Self::Running | Self::Restoring, Event::Failed | Event::Stopped) => self,
            (Self::Done(_), _) => return None,
            (_, Event::Failed | Event::Stopped) => Self::Done(End::Unwritten),
            _ => return None,
        })
    }

    /// Whether bytes of the target may differ from before.
    pub(super) const fn may_be_written(self) -> bool {
        matches!(self, Self::Running | Self::Restoring | Self::Done(End::Written | End::Lost))
    }

    /// What may be done now, for messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Placed => "placed",
            Self::Checked => "checked",
            Self::Consented => "consented",
            Self::Held => "held",
            Self::Saved => "saved",
            Self::Running => "running",
            Self::Restoring => "restoring",
            Self::Done(_) => "done",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Every state that events can reach.
    fn reachable() -> HashSet<State> {
        let (mut found, mut open) = (HashSet::from([State::Placed]), vec![State::Placed]);
        while let Some(state) = open.pop() {
            let next = Event::ALL.into_iter().filter_map(|event| state.after(event));
            open.extend(next.filter(|next| found.insert(*next)));
        }
        found
    }

    #[test]
    fn every_state_is_reached_and_none_skips_a_step() {
        let order = [
            State::Placed,
            State::Checked,
            State::Consented,
            State::Held,
            State::Saved,
            State::Running,
            State::Restoring,
        ];
        assert_eq!(reachable().len(), order.len() + 4);
        for (index, state) in order.into_iter().enumerate() {
            for next in Event::ALL.into_iter().filter_map(|event| state.after(event)) {
                let is_next = order.get(index + 1) == Some(&next);
                assert!(is_next || next == state || matches!(next, State::Done(_)), "{state:?} -> {next:?}");
            }
        }
    }

    #[test]
    fn errors_and_signals_end_without_a_write_or_lead_to_the_restore() {
        for state in reachable() {
            for event in [Event::Failed, Event::Stopped] {
                let next = state.after(event);
                match state {
                    State::Running | State::Restoring => assert_eq!(next, Some(state)),
                    State::Done(_) => assert_eq!(next, None),
                    _ => assert_eq!(next, Some(State::Done(End::Unwritten))),
                }
            }
        }
        for event in Event::ALL {
            let next = State::Running.after(event);
            assert_ne!(next, Some(State::Done(End::Unwritten)), "{event:?}");
        }
        // After saved content only the restore ends it.
        assert_eq!(State::Running.after(Event::Ended { is_kept: true }), Some(State::Restoring));
    }
}
