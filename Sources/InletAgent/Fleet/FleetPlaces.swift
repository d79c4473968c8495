internal import InletCore
internal import InletFleet
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization
internal import SystemPackage

/// The shares that this agent watches together with others, and its work there. Its parts: `PlaceKeeper` finds the
/// shares and holds those that it may list, `PlaceAdmission` admits their files, `PlaceWorker` claims work and settles it.
final class FleetPlaces: PlaceQueue {
    /// A share of the configuration.
    struct Share: Sendable, Equatable {
        let name: String
        let root: FilePath
        /// The UUID in `.inlet/place`, as the fleet has it; nil before both were seen.
        var marker: String?
        /// The fleet's number in this session.
        var number: Int32?
        /// Why nothing of it may be touched: no marker, another share's marker.
        var trouble: String?
        /// With this fence it is this agent's, in this session.
        var fence: Int64?
        /// The agent that holds it; for display.
        var holder: String?
        /// Whether the fleet was asked in this session who holds it.
        var isAsked = false
        /// Whether the fleet knows the files that this agent took here while it watched the folder alone.
        var isTold = false
        /// Whether a delivery of such files has ended since the fleet was asked to forget those that came to nothing.
        var hasLostOwn = false
        /// How often in a row the fleet has left it out, although it is this agent's.
        var misses = 0
    }

    /// Work that is this agent's.
    struct Hold: Sendable, Equatable {
        var work: Int64
        var fence: Int64
        var session: Int64
        var root: FilePath
        var isFinishing: Bool
        var size: Int64
        /// Whether the source is another file than was admitted, of the same size and mtime: it is not disposed of.
        var isReplaced = false
        /// The addresses of its destinations when it was claimed: a changed configuration must not send it elsewhere.
        var addresses: [String: String] = [:]
    }

    struct State {
        var shares: [FilePath: Share] = [:]
        /// Held shares that left the configuration.
        var left: [Share] = []
        /// Whether the first configuration was taken.
        var hasBegun = false
        /// The session for which numbers and fences hold.
        var session: Int64 = 0
        /// By file.
        var work: [Int64: Hold] = [:]
        /// Files of which nothing more is sent: they leave the queue once nothing of them runs.
        var leaving: Set<Int64> = []
        /// How often a version was dropped as changed, although its size and mtime are the same.
        var changes: [PlaceVersion: Int] = [:]
        /// The shares in which a source was left as replaced.
        var replaced: Set<FilePath> = []
        /// Where pipelines are looked up; nil before the work begins.
        var destinations: DestinationRegistry?
    }

    let member: FleetMember
    let state = Mutex(State())
    let notes = PlaceNotes()
    let renamer = PlaceRenamer()

    init(_ member: FleetMember) { self.member = member }

    var journal: Journal { member.journal }

    /// The shares that are there, have their marker and a number in this session.
    var usable: [Share] {
        let session = member.session
        return state.withLock { state in
            guard session != 0, state.session == session else { return [] }
            return state.shares.values.filter { $0.trouble == nil && $0.marker != nil && $0.number != nil }
        }
    }

    /// The share of a root.
    func share(_ root: FilePath) -> Share? { state.withLock { $0.shares[root] } }

    /// The live claim of a file; nil where another may have it.
    func hold(of file: Int64) -> Hold? {
        guard member.grants else { return nil }
        let (session, destinations) = (member.session, member.places)
        return state.withLock { state in
            guard let hold = state.work[file], hold.session == session, state.shares[hold.root]?.trouble == nil,
                hold.addresses.allSatisfy({ destinations[$0]?.address == $1 })
            else { return nil }
            return hold
        }
    }
}
