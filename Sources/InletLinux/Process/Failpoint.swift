import Glibc
package import InletCore
import Synchronization

/// The places where tests kill the process with `SIGKILL`, to prove that nothing is lost or done twice. They surround
/// the journal's changes for a file, a person's order, a notice and a unit's checksum list, and the steps that such a
/// change announces.
///
/// Not every change has one. A change that only postpones, counts or cleans up is repeated when a crash undoes it:
/// times of the next attempt, expiry clocks, old rows, backups.
///
/// Debug builds read `INLET_FAILPOINT`, which names one of them; `name:N` means its Nth passing. For the two about
/// notes, `name:NOTE` and `name:NOTE:N` count only notes of that name (`part` for every `part:7`). Release builds do
/// nothing.
package enum Failpoint: String, CaseIterable, Sendable {
    case opening, opened, recovered, derived, admitting, admitted, closingUnit, unitClosed, claimed, noting, noted
    case uploadCreated, partUploaded, beforeComplete, copied, renamed, afterComplete, settling, delivered, acting
    case acted, abandoned, leftoverRemoved, intending, intentWritten, renamedAway, moveNoted, moveCopied, moved
    case reasonWritten, disposed, receiptWritten, finished, posting, posted, noticeTaken, noticeRemoved
    case listAtHome, generationWritten, listsWritten, listsDone

    @inline(__always)
    package func reached() {
        #if DEBUG
            pass([])
        #endif
    }

    /// - Parameter notes: the names of the notes that are written together.
    @inline(__always)
    package func reached(with notes: Dictionary<String, [UInt8]>.Keys) {
        #if DEBUG
            pass(notes.map(Self.kind))
        #endif
    }

    #if DEBUG
        /// `part` of `part:7`.
        private static func kind(_ note: String) -> String { String(note.prefix { $0 != ":" }) }

        /// The event just before or after it, for the contributors' table.
        package var meaning: String { Self.meanings[self] ?? "" }

        private static let meanings: [Failpoint: String] = [
            .opening: "the journal is about to be opened: created, its log replayed, its schema migrated",
            .opened: "the journal is open and of this version; nothing is recovered yet",
            .recovered: "the claims of the process that died are back in the queue",
            .derived: "a derived file has its final name; the journal does not know it",
            .admitting: "a file, alone or with its companions, is about to be admitted",
            .admitted: "durable point 1: the file is in the journal, and nothing is announced",
            .closingUnit: "a unit is complete; the journal is about to learn of it",
            .unitClosed: "all deliveries of the unit are due",
            .claimed: "an attempt has been counted and is about to begin",
            .noting: "a step of a pipeline is done; its note is about to be written",
            .noted: "that note is durable",
            .uploadCreated: "the note `upload` is durable",
            .partUploaded: "the note of a part, or of an offset, is durable",
            .beforeComplete: "the journal has noted that something may be visible at the destination from now on",
            .copied: "a copy to a folder is on the disk under its temporary name",
            .renamed: "the copy has its final name, which is not synced yet",
            .afterComplete: "the pipeline has its proof; the journal does not know it",
            .settling: "outcomes of deliveries are about to be written",
            .delivered: "durable point 2: the outcome of a delivery is in the journal",
            .abandoned: "a given-up upload is gone from its destination; the journal still has it",
            .leftoverRemoved: "the journal has forgotten it too",
            .intending: "the source may be disposed of; the intent is about to be written",
            .intentWritten: "the intent is durable; the source still has its name",
            .renamedAway: "the source has its private name, or is below `.inlet/held`",
            .moveNoted: "the name in the archive or quarantine is durable; nothing has been moved",
            .moveCopied: "a copy on another file system has that name; the source is still there",
            .moved: "the source has that name, which is not synced yet",
            .reasonWritten: "`.reason.json` stands beside the quarantined file",
            .disposed: "the source is disposed of; there is no receipt",
            .receiptWritten: "the receipt is a file, where its route wants one; the journal has none",
            .finished: "durable point 3: the receipt is in the journal, and nothing is announced",
            .acting: "a person's command on files, the queue or a destination is about to change the journal",
            .acted: "the command has changed the journal; no loop of the agent knows",
            .posting: "a notification about a destination is about to enter the outbox",
            .posted: "it is in the outbox; its receivers have not been woken",
            .noticeTaken: "a receiver has accepted a notification, which is still in the outbox",
            .noticeRemoved: "the notification is gone from the outbox",
            .listAtHome: "the state directory has the checksum list of an ended unit; no destination has one",
            .generationWritten: "a delivered folder has its list, which the history's chain does not name yet",
            .listsWritten: "all lists of the unit are there, and the journal still owes them",
            .listsDone: "the journal owes them no longer",
        ]
    #endif
}

#if DEBUG
    extension Failpoint {
        private typealias Armed = (point: Failpoint, note: String?, passing: Int)

        /// The failpoint that the environment names, read once; nil for any other text.
        private static let armed: Armed? = {
            let words = ProcessSetup.environment("INLET_FAILPOINT")?.split(separator: ":").map(String.init) ?? []
            guard let first = words.first, let point = Failpoint(rawValue: first) else { return nil }
            let (numbers, notes) = (
                words.dropFirst().compactMap { Int($0) }, words.dropFirst().filter { Int($0) == nil }
            )
            return (point, notes.last, numbers.last ?? 1)
        }()
        private static let passed = Atomic<Int>(0)

        private func pass(_ notes: [String]) {
            guard let armed = Self.armed, armed.point == self else { return }
            if let note = armed.note, !notes.contains(note) { return }
            let count = Self.passed.wrappingAdd(1, ordering: .relaxed).newValue
            if count == armed.passing { kill(getpid(), SIGKILL) }
        }
    }
#endif

extension ProbePace {
    /// The pace of this process. Debug builds read `INLET_PROBE_PACE`, `FIRST:INTERVAL` in milliseconds, so that tests of the
    /// whole agent need not wait for minutes.
    package static var configured: ProbePace {
        #if DEBUG
            let parts =
                ProcessSetup.environment("INLET_PROBE_PACE")?.split(separator: ":").compactMap { Int64($0) } ?? []
            if parts.count == 2 { return ProbePace(first: .milliseconds(parts[0]), interval: .milliseconds(parts[1])) }
        #endif
        return ProbePace()
    }
}
