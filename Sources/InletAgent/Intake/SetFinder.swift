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

    /// A companion that is there with its file.
    struct Found: Sendable {
        var companion: Companion
        var arrival: Arrival
    }

    enum Standing: Sendable {
        case alone
        /// A file with the companions that are there; `isWhole` when none of those that its route names is missing.
        case main([Found], isWhole: Bool, wait: Duration)
        /// A file whose marker says that it is complete.
        case marked([Found])
        /// A file whose marker is not there yet.
        case unmarked(marker: FilePath)
        /// A file whose marker is just being made: without it the file must not go, or nobody would take the marker.
        case beingMarked
        /// A companion whose file is there, but not in the journal yet.
        case waiting(main: FilePath, wait: Duration)
        /// A companion whose file waits for its marker: found again with it.
        case dormant
        /// A companion whose file is in the journal. `wait` when that is not on the disk: another of its name may come.
        case late(Companion, main: Int64, wait: Duration?)
        /// A companion without a file.
        case orphan(wait: Duration)
    }

    /// - Parameter arrival: a file that is new to the journal. Blocks on the disk.
    func standing(of arrival: Arrival, at now: WallTime) async throws -> Standing {
        guard routes.hasCompanions else { return .alone }
        let belongings = routes.belongings(of: arrival.path)
        if let standing = try await standing(belongings) { return standing }
        let orphaned = belongings.map(\.route.sidecars.wait).max()
        guard let route = routes.route(for: arrival.path, size: arrival.identity.size), route.hasCompanions else {
            return orphaned.map { .orphan(wait: $0) } ?? .alone
        }
        let standing = try standing(ofMain: arrival, route, at: now)
        if case .main(let found, true, let wait) = standing, let orphaned {
            return .main(found, isWhole: false, wait: max(wait, orphaned))
        }
        return standing
    }

    // MARK: - As a companion

    /// nil when none of the files that it may belong to is, or was, there.
    private func standing(_ belongings: [Belonging]) async throws -> Standing? {
        var gone: Standing?
        for belonging in belongings {
            let wait = belonging.route.sidecars.wait
            let row = try await journal.newest(root, [belonging.main]).first ?? nil
            guard let identity = try mainOnDisk(belonging) else {
                if gone == nil, let row, ![.gone, .superseded].contains(row.state) {
                    gone = .late(belonging.companion, main: row.id, wait: wait)
                }
                continue
            }
            let main = Arrival(root: root, path: belonging.main, identity: identity)
            if let row, try await journal.recall([main], tolerance: tolerance) != [.new] {
                return .late(belonging.companion, main: row.id, wait: nil)
            }
            if belonging.route.wantsMarker, try !isMarked(main.path, belonging.route) { return .dormant }
            return .waiting(main: main.path, wait: max(wait, Self.shortestWait))
        }
        return gone
    }

    /// Companions look again at least so seldom.
    private static let shortestWait = Duration.seconds(1)

    /// The file that the companion may belong to, as far as its route takes it.
    private func mainOnDisk(_ belonging: Belonging) throws(SystemError) -> FileIdentity? {
        guard let identity = try FileLook.look(at: root.pushing(belonging.main)).identity,
            routes.route(for: belonging.main, size: identity.size)?.name == belonging.route.name
        else { return nil }
        if let skipBefore, WallTime(nanoseconds: max(identity.modified, identity.changed)) < skipBefore { return nil }
        return identity
    }

    private func isMarked(_ main: FilePath, _ route: Route) throws(SystemError) -> Bool {
        for candidate in route.companions(of: main) where candidate.kind == .marker {
            if try FileLook.look(at: root.pushing(candidate.path)).identity != nil { return true }
        }
        return false
    }

    // MARK: - As a main file

    private func standing(
        ofMain arrival: Arrival, _ route: Route, at now: WallTime
    ) throws(SystemError) -> Standing {
        var found: [Found] = []
        var missing: Set<String> = Set(route.sidecars.extensions)
        if route.sidecars.metadata { missing.insert(Self.metadata) }
        var isWhole = true
        for candidate in route.companions(of: arrival.path) {
            // Of `.yaml` and `.yml` the first counts.
            if candidate.kind == .metadata, !missing.contains(Self.metadata) { continue }
            guard let identity = try FileLook.look(at: root.pushing(candidate.path)).identity else {
                if candidate.kind == .marker { return .unmarked(marker: candidate.path) }
                continue
            }
            missing.remove(candidate.kind == .metadata ? Self.metadata : candidate.ending.lowercased())
            let companion = Arrival(root: root, path: candidate.path, identity: identity)
            if isComplete(companion, route, at: now) {
                found.append(Found(companion: candidate, arrival: companion))
            } else if candidate.kind == .marker {
                return .beingMarked
            } else {
                isWhole = false
            }
        }
        if route.wantsMarker { return .marked(found) }
        return .main(found, isWhole: isWhole && missing.isEmpty, wait: route.sidecars.wait)
    }

    /// No ending has a slash.
    private static let metadata = "/"

    /// A companion is judged by its own times; one from the future, by its writers only. A marker says that all is there.
    private func isComplete(_ companion: Arrival, _ route: Route, at now: WallTime) -> Bool {
        let identity = companion.identity
        let age = now - WallTime(nanoseconds: max(identity.modified, identity.changed))
        guard route.wantsMarker || age < .zero || age >= route.settle ?? settle else { return false }
        return Lease.probe(path: root.pushing(companion.path)) != .busy
    }
}
