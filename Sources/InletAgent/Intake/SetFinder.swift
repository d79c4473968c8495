internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Finds, on the disk and in the journal, what a file belongs to and what belongs to it.
struct SetFinder: Sendable {
    let root: FilePath
    /// The root's.
    let settle: Duration
    let tolerance: Int64
    /// With `existing: skip`.
    let skipBefore: WallTime?
    let routes: RouteTable
    let journal: Journal
    var volume: Volume?
    /// What it leaves out is not there.
    var rule = SourceRule()

    /// A companion that is there with its file.
    struct Found: Sendable {
        var companion: Companion
        var arrival: Arrival
    }

    enum Standing: Sendable {
        case alone
        /// A file with the companions that are there; `isWhole` when none of those that its route names is missing.
        /// Otherwise it goes without them once it has been quiet for so long.
        case main([Found], isWhole: Bool, quiet: Duration)
        /// A file whose marker says that it is complete.
        case marked([Found])
        /// A file whose marker is not there yet, or has spoken for what was there before.
        case unmarked(marker: FilePath)
        /// What it belongs together with is just being made or disposed of: to be looked at again. A file must not go
        /// without its marker, or nobody would take that.
        case unsettled
        /// A companion whose file is there, but not in the journal yet.
        case waiting(main: FilePath, wait: Duration)
        /// A companion whose file waits for its marker: found again with it.
        case dormant
        /// A companion whose file is in the journal. `quiet` when that is not on the disk: another of its name may come.
        case late(Companion, main: Int64, quiet: Duration?)
        /// Metadata of a file that was rejected for what stood in its place before.
        case corrected(main: FilePath, job: Int64)
        /// A companion without a file.
        case orphan(quiet: Duration)

        /// Whether nothing is done with it until a marker is there.
        var isAwaited: Bool {
            switch self {
            case .unmarked, .dormant: true
            default: false
            }
        }
    }

    /// - Parameter arrival: a file that is new to the journal. Blocks on the disk.
    func standing(of arrival: Arrival, at now: WallTime) async throws -> Standing {
        guard routes.hasCompanions else { return .alone }
        let belongings = routes.belongings(of: arrival.path)
        if let standing = try await standing(belongings, of: arrival, at: now) { return standing }
        let orphaned = belongings.map { quiet(arrival.path, $0.route) }.max()
        guard let route = routes.route(for: arrival.path, size: arrival.identity.size), route.hasCompanions else {
            return orphaned.map { .orphan(quiet: $0) } ?? .alone
        }
        let standing = try await standing(ofMain: arrival, route, at: now)
        if case .main(let found, true, let quiet) = standing, let orphaned {
            return .main(found, isWhole: false, quiet: max(quiet, orphaned))
        }
        return standing
    }

    /// How long a companion at `path` waits for its file: that only has to be there then.
    private func quiet(_ path: FilePath, _ route: Route) -> Duration {
        max(routes.settle(for: path) ?? settle, route.sidecars.wait)
    }

    private func taken(_ path: FilePath) throws(SystemError) -> FileIdentity? {
        let found = try FileLook.look(at: RootedPath(root, path))
        return found.refusal(by: rule) == nil ? found.identity : nil
    }

    // MARK: - As a companion

    /// nil when none of the files that it may belong to is, or was, there.
    private func standing(
        _ belongings: [Belonging], of arrival: Arrival, at now: WallTime
    ) async throws -> Standing? {
        var gone: Standing?
        for belonging in belongings {
            let row = try await journal.newest(root, [belonging.main], volume: volume?.key).first ?? nil
            guard let identity = try mainOnDisk(belonging) else {
                if gone == nil, let row, ![.gone, .superseded].contains(row.state) {
                    gone = .late(belonging.companion, main: row.id, quiet: quiet(arrival.path, belonging.route))
                }
                continue
            }
            let main = Arrival(root: root, path: belonging.main, identity: identity, volume: volume)
            if let row, try await journal.recall([main], tolerance: tolerance) != [.new] {
                guard row.code == .badSidecar, try isFirstMetadata(belonging) else {
                    return .late(belonging.companion, main: row.id, quiet: nil)
                }
                // The file looks at it once, and has been quiet for long.
                let isReady = row.finishedAt != nil && isComplete(arrival, belonging.route, at: now)
                return isReady ? .corrected(main: main.path, job: row.id) : .unsettled
            }
            if belonging.route.wantsMarker, try await !isMarked(main.path, belonging.route) { return .dormant }
            return .waiting(main: main.path, wait: max(belonging.route.sidecars.wait, Self.shortestWait))
        }
        return gone
    }

    /// Whether it is the metadata that its file would read: of `.yaml` and `.yml` the first counts.
    private func isFirstMetadata(_ belonging: Belonging) throws(SystemError) -> Bool {
        for candidate in belonging.route.companions(of: belonging.main) where candidate.kind == .metadata {
            if candidate.path == belonging.companion.path { return true }
            if try taken(candidate.path) != nil { return false }
        }
        return false
    }

    /// Companions look again at least so seldom.
    private static let shortestWait = Duration.seconds(1)

    /// The file that the companion may belong to, as far as its route takes it.
    private func mainOnDisk(_ belonging: Belonging) throws(SystemError) -> FileIdentity? {
        guard let identity = try taken(belonging.main),
            routes.route(for: belonging.main, size: identity.size)?.name == belonging.route.name
        else { return nil }
        if let skipBefore, WallTime(nanoseconds: max(identity.modified, identity.changed)) < skipBefore { return nil }
        return identity
    }

    private func isMarked(_ main: FilePath, _ route: Route) async throws -> Bool {
        for candidate in route.companions(of: main) where candidate.kind == .marker {
            guard let identity = try taken(candidate.path) else { continue }
            let marker = Arrival(root: root, path: candidate.path, identity: identity, volume: volume)
            return try await !isSpent(marker, of: main)
        }
        return false
    }

    /// Whether a marker has spoken for its file before. One that was kept, or not disposed of yet, says nothing of what the
    /// file is now, whatever became of what it was; unless the journal was told to forget that.
    private func isSpent(_ marker: Arrival, of main: FilePath) async throws -> Bool {
        let rows = try await journal.newest(root, [main, marker.path], volume: volume?.key)
        guard rows.first ?? nil != nil, let row = rows.last ?? nil else { return false }
        if [.gone, .superseded].contains(row.state) { return row.identity == marker.identity }
        return try await journal.recall([marker], tolerance: tolerance) != [.new]
    }

    // MARK: - As a main file

    private func standing(
        ofMain arrival: Arrival, _ route: Route, at now: WallTime
    ) async throws -> Standing {
        var found: [Found] = []
        var missing: Set<String> = Set(route.sidecars.extensions)
        if route.sidecars.metadata { missing.insert(Self.metadata) }
        var isWhole = true
        for candidate in route.companions(of: arrival.path) {
            // Of `.yaml` and `.yml` the first counts.
            if candidate.kind == .metadata, !missing.contains(Self.metadata) { continue }
            guard let identity = try taken(candidate.path) else {
                if candidate.kind == .marker { return .unmarked(marker: candidate.path) }
                continue
            }
            missing.remove(candidate.kind == .metadata ? Self.metadata : candidate.ending.lowercased())
            let companion = Arrival(root: root, path: candidate.path, identity: identity, volume: volume)
            if candidate.kind == .marker, try await isSpent(companion, of: arrival.path) {
                return .unmarked(marker: candidate.path)
            }
            if isComplete(companion, route, at: now) {
                found.append(Found(companion: candidate, arrival: companion))
            } else if candidate.kind == .marker {
                return .unsettled
            } else {
                isWhole = false
            }
        }
        if route.wantsMarker { return .marked(found) }
        // What comes within `wait` after the file needs its own quiet time to be seen as complete.
        let quiet = (route.settle ?? settle) + route.sidecars.wait
        return .main(found, isWhole: isWhole && missing.isEmpty, quiet: quiet)
    }

    /// No ending has a slash.
    private static let metadata = "/"

    /// A companion is judged by its own times; one from the future, by its writers only. A marker says that all is there.
    private func isComplete(_ companion: Arrival, _ route: Route, at now: WallTime) -> Bool {
        let identity = companion.identity
        let age = now - WallTime(nanoseconds: max(identity.modified, identity.changed))
        guard route.wantsMarker || age < .zero || age >= route.settle ?? settle else { return false }
        return WriterProbe.probe(companion.place) != .busy
    }
}
