internal import InletConfig
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// Takes single files that a person names (`inlet send`) into the queue. They are never moved or deleted, and sending the
/// same file to the same place again goes on with what is there.
struct SendDesk: Sendable {
    let admitter: Admitter
    let journal: Journal
    let board: DestinationBoard
    let hashing: BlockingPool
    let roots: [WatchSettings]
    let retry: @Sendable (Int64) async throws -> Bool

    func send(_ path: FilePath, to destination: String?) async -> SendAnswer {
        if let destination, board[destination] == nil {
            return .refused(Self.unknown(destination, board.names))
        }
        do {
            guard let identity = try FileLook.look(at: path).identity else {
                return .refused("\(path.display): not a regular file, or not there")
            }
            let place = SourcePlace(path, roots: roots.compactMap { $0.root(of: path) })
            let arrival = Arrival(
                root: place.root, path: place.path, identity: identity,
                volume: (try? VolumeFinder().identity(of: path)).map { Volume(name: $0.name) })
            let hashing = Hashing(pool: hashing)
            var facts = try await admitter.firstFacts(of: arrival, at: path, hashing)
            let routes = routes(for: place.path, identity.size, facts.mediaType, destination)
            // Other companions, units and markers are for watched folders: a file that is named goes alone, and at once.
            facts.add(
                try await SidecarFile.metadata(
                    beside: arrival, routes, mediaType: facts.mediaType, on: hashing.pool))
            switch try await admitter.decide(arrival, by: routes, at: path, facts: facts, hashing: hashing) {
            case .plan(let plan):
                // Rows of sent files have an empty root, so that they and those of a watched root never meet.
                let arrival = Arrival(root: "", path: path, identity: identity)
                return try await queue(admitter.admission(arrival, plan, path: place.path))
            case .rejected(_, let reason): return .refused("\(path.display): \(reason)")
            case .unmatched, .needs:
                return .refused("\(path.display): no route takes it; name a destination with --to")
            }
        } catch let error as ConfigErrors {
            return .refused("\(path.display): \(SidecarFile.reason(error))")
        } catch {
            return .refused("\(error)")
        }
    }

    private func queue(_ wanted: Admission) async throws -> SendAnswer {
        var admission = wanted
        let (path, identity) = (admission.arrival.path, admission.arrival.identity)
        let last = try await journal.lastSent(path, to: admission.steps.destinations)
        if let known = last, identity.isKnown(as: known.file.identity) {
            if [.failed, .expired, .cancelled, .gone].contains(known.file.state) { _ = try await retry(known.file.id) }
            return .queued(job: known.file.id)
        }
        admission.newerThan = last?.file.id ?? 0
        switch await admitter.commit(admission) {
        case .admitted(let id), .known(let id), .duplicate(let id, _): return .queued(job: id)
        case .rejected, .busy, .full, nil:
            return .refused("\(path.display): the journal cannot be written now; try later")
        }
    }

    /// The configured routes, or the one that takes the file with another destination. Sources stay where they are.
    private func routes(
        for path: FilePath, _ size: Int64, _ mediaType: String?, _ destination: String?
    ) -> RouteTable {
        guard let destination else { return RouteTable(admitter.routes.routes.map { Self.keeping($0) }) }
        let known = admitter.routes.route(for: path, size: size, mediaType: mediaType)
        var route = known ?? Route(name: "send", to: [destination])
        route.to = [destination]
        // A route that leads elsewhere has not been given this destination's fields.
        route.with.merge(board[destination]?.fields ?? [:]) { given, _ in given }
        // Nor does it say what a sidecar may set for this one.
        let type = PipelineFactory.types.first { $0.name == board[destination]?.type }
        route.sidecarFields = type.map { Set($0.fields.map(\.name)) }
        route.match = RouteMatch()
        return RouteTable([Self.keeping(route)])
    }

    private static func keeping(_ route: Route) -> Route {
        var route = route
        route.onSuccess = .keep
        route.onFailure = .keep
        // Who names a file wants it sent now.
        route.window = nil
        return route
    }

    private static func unknown(_ name: String, _ known: [String]) -> String {
        let hint = Suggestion.nearest(to: name, in: known).map { "; did you mean '\($0)'?" } ?? ""
        return "no destination is called '\(name)'\(hint)"
    }
}
