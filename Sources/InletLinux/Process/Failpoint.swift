import Glibc
package import InletCore
import Synchronization

/// The places where tests end the process by `SIGKILL`, to prove that nothing is lost or done twice there: around the
/// changes of the journal that make up a file's way, a person's command, a notice and a unit's checksum list, and between
/// the steps that one such change announces.
///
/// Not every change has one: what only puts something off, keeps count or cleans up is made again when a crash undoes it
/// (times of the next try, expiry clocks, old rows, backups).
///
/// Debug builds read `INLET_FAILPOINT`, which names one of them, `name:N` its Nth passing; of the two about notes,
/// `name:NOTE` and `name:NOTE:N` count only those of that name (`part` for every `part:7`). Release builds do nothing.
package enum Failpoint: String, CaseIterable, Sendable {
    case opening
    case opened
    case recovered
    case derived
    case admitting
    case admitted
    case closingUnit
    case unitClosed
    case claimed
    /// A step has been done, and its note is about to be written.
    case noting
    case noted
    case uploadCreated
    case partUploaded
    case beforeComplete
    case copied
    case renamed
    case afterComplete
    case settling
    case delivered
    case acting
    case acted
    case abandoned
    case leftoverRemoved
    case intending
    case intentWritten
    case renamedAway
    case moveNoted
    case moveCopied
    case moved
    case reasonWritten
    case disposed
    case receiptWritten
    case finished
    case posting
    case posted
    case noticeTaken
    case noticeRemoved
    case listAtHome
    case generationWritten
    case listsWritten
    case listsDone

    @inline(__always)
    package func reached() {
        #if DEBUG
            pass([])
        #endif
    }

    /// - Parameter notes: the names of those that are written together.
    @inline(__always)
    package func reached(with notes: Dictionary<String, [UInt8]>.Keys) {
        #if DEBUG
            pass(notes.map(Self.kind))
        #endif
    }

    #if DEBUG
        /// `part` of `part:7`.
        private static func kind(_ note: String) -> String { String(note.prefix { $0 != ":" }) }

        /// What has just happened there, or is about to; the contributors' table.
        package var meaning: String {
            switch self {
            case .opening: "the journal is about to be opened: made, its log taken in, its schema brought up to date"
            case .opened: "the journal is open and of this version; nothing is recovered"
            case .recovered: "the claims of the process that died are back in the queue"
            case .derived: "what a program made of an original has its name; the journal does not know it"
            case .admitting: "a file, alone or with its companions, is about to be admitted"
            case .admitted: "durable point 1: it is in the journal, and nobody has been told"
            case .closingUnit: "a unit is complete, which the journal is about to hear"
            case .unitClosed: "all deliveries of the unit are due"
            case .claimed: "an attempt has been counted and is about to begin"
            case .noting: "a step of a pipeline is done, and its note is about to be written"
            case .noted: "that note is durable"
            case .uploadCreated: "the note `upload` is durable"
            case .partUploaded: "the note of a part, or of an offset, is durable"
            case .beforeComplete: "it is noted that something may be visible at the destination from here on"
            case .copied: "a copy to a folder is on the disk under its temporary name"
            case .renamed: "the copy has its final name, which is not synced yet"
            case .afterComplete: "the pipeline has its proof; the journal does not know it"
            case .settling: "the ends of deliveries, whatever they are, are about to be written"
            case .delivered: "durable point 2: an end of a delivery is in the journal"
            case .abandoned: "a given-up upload is gone from its destination; the journal still has it"
            case .leftoverRemoved: "the journal has forgotten it too"
            case .intending: "the source may be disposed of; its intent is about to be written"
            case .intentWritten: "the intent is durable, the source still has its name"
            case .renamedAway: "the source has its private name, or is below `.inlet/held`"
            case .moveNoted: "the name in the archive or quarantine is durable; nothing has been moved"
            case .moveCopied: "a copy on another file system has that name, and the source is still there"
            case .moved: "the source has that name, which is not synced yet"
            case .reasonWritten: "`.reason.json` stands beside the quarantined file"
            case .disposed: "the source is disposed of, and there is no receipt"
            case .receiptWritten: "the receipt is a file, where its route wants one; the journal has none"
            case .finished: "durable point 3: the receipt is in the journal, and nobody has been told"
            case .acting, .acted, .posting, .posted, .noticeTaken, .noticeRemoved,
                .listAtHome, .generationWritten, .listsWritten, .listsDone:
                meaningBesideFiles
            }
        }

        /// The same of what is not on a file's own way.
        private var meaningBesideFiles: String {
            switch self {
            case .acting: "a person's command on files, on the queue or on a destination is about to change the journal"
            case .acted: "it has, and no loop of the agent has been told"
            case .posting: "that a destination is down or up is about to be put in the outbox"
            case .posted: "it is in the outbox, and its receivers have not been woken"
            case .noticeTaken: "a receiver has taken a notice, which is still in the outbox"
            case .noticeRemoved: "the notice is gone from the outbox"
            case .listAtHome: "the state directory has the checksum list of an ended unit, and no destination has one"
            case .generationWritten: "a delivered folder has its list, which the history's chain does not name"
            case .listsWritten: "all lists of the unit are there, and the journal still owes them"
            case .listsDone: "the journal owes them no longer"
            default: ""
            }
        }
    #endif
}

#if DEBUG
    extension Failpoint {
        private typealias Armed = (point: Failpoint, note: String?, passing: Int)

        /// What the environment names, read once; nil for text that names no failpoint.
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
