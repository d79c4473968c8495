internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// All differences by the cause of an admission are here: there is one way into the journal.
struct AdmissionReason: Sendable {
    /// Files per transaction. A larger number of single arrivals would keep deliveries from the journal; listings bring
    /// thousands, to disks that sync slowly.
    var group = 128
    /// Whether the file is outside watched folders. Its row has no root, so it never meets the row of a watched file.
    /// The source stays, ignores delivery windows, and waits for no room in the queue. Companions, derived files and
    /// its unit do not go with it.
    var isAsked = false

    /// Seen in a watched folder, by an event.
    static let found = AdmissionReason()
    /// Seen in a watched folder, by a listing with many others.
    static let listed = AdmissionReason(group: 512)
    /// Named by a person (`inlet send`), or a unit's checksum list on its way to a destination.
    static let asked = AdmissionReason(isAsked: true)

    /// The routes as they apply to such files.
    func routes(_ table: RouteTable) -> RouteTable { isAsked ? RouteTable(table.routes.map { Self.asked($0) }) : table }

    private static func asked(_ route: Route) -> Route {
        var route = route
        (route.onSuccess, route.onFailure) = (.keep, .keep)
        route.window = nil
        return route
    }

    /// The file as its row has it.
    func row(of arrival: FoundFile) -> FoundFile {
        if !isAsked { return arrival }
        return FoundFile(root: "", path: arrival.root.pushing(arrival.path), identity: arrival.identity)
    }
}

/// A complete file on its way to the journal.
struct Candidate: Sendable {
    var arrival: FoundFile
    /// The files that go with it; nearly always none.
    var companions: [FoundCompanion] = []
    /// Its role for a file that is already in the journal; nil for a file on its own.
    var late: (companion: Companion, main: Int64)?
    /// Of its folder.
    var rule: SourceRule
    /// Facts that were read before, when the journal did not accept it.
    var facts = FileProperties()
}

/// The result of an admission.
struct AdmissionResult: Sendable {
    enum Outcome: Sendable, Equatable {
        /// The journal's answer.
        case journal(AdmissionOutcome)
        /// It matches no route.
        case unmatched
        /// It is gone.
        case gone
        /// It cannot be read now.
        case unreadable(why: String)
        /// Something else prevents it; the journal may accept nothing now.
        case later

        /// Whether it is admitted later, in its state at that time.
        var comesBack: Bool {
            switch self {
            case .journal(let outcome): outcome.comesBack
            case .unreadable, .later: true
            case .unmatched, .gone: false
            }
        }
    }

    var arrival: FoundFile
    var outcome: Outcome
    /// Its companions that are in the journal now.
    var companions: [FilePath] = []
    /// Facts that were read, for its next admission.
    var facts = FileProperties()
    /// The labels of its card that it waits for.
    var awaited: Set<CardLabels.Field> = []
}

/// A unit (a folder delivered as one) that received a file.
typealias JoinedUnit = (unit: UnitClock.Unit, settle: Duration, completion: Completion)
