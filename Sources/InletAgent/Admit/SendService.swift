internal import InletConfig
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// Queues single files that a person names (`inlet send`). They are never moved or deleted. Sending the same file to
/// the same destination again continues the earlier delivery.
extension Admission {
    private var why: AdmissionReason { .asked }
    /// Groups that are processed side by side: one is written while another is read.
    private static let abreast = 16

    /// - Parameters:
    ///   - again: sends files once more that were delivered before.
    ///   - reading: its threads look at files and read them.
    /// - Returns: the result for each file, in their order.
    func send(
        _ paths: [FilePath], to destination: String?, again: Bool, on reading: BlockingPool
    ) async -> [SendResult] {
        await withTaskExecutorPreference(reading) {
            await send(paths, to: destination, again: again, Hashing(pool: reading))
        }
    }

    private func send(
        _ paths: [FilePath], to destination: String?, again: Bool, _ hashing: Hashing
    ) async -> [SendResult] {
        if let destination, registry[destination] == nil {
            return paths.map { _ in .refused(Self.unknown(destination, registry.names)) }
        }
        // A file that must be read may take minutes; no other waits for it.
        let size = routes.isByName ? why.group : 1
        let groups = paths.groups(of: size)
        return await withTaskGroup(of: (Int, [SendResult]).self) { tasks in
            var answers = [[SendResult]](repeating: [], count: groups.count)
            for (number, group) in groups.enumerated() {
                if number >= Self.abreast, let (ended, some) = await tasks.next() { answers[ended] = some }
                tasks.addTask { (number, await take(group, destination, again, hashing)) }
            }
            for await (ended, some) in tasks { answers[ended] = some }
            return answers.flatMap(\.self)
        }
    }

    private func take(
        _ paths: [FilePath], _ destination: String?, _ again: Bool, _ hashing: Hashing
    ) async -> [SendResult] {
        var looks: [Result<FileAdmission, Refusal>] = []
        var volumes: [UInt64: Volume] = [:]
        let asked = why.routes(routes)
        for path in paths { looks.append(await look(at: path, destination, asked, &volumes, hashing)) }
        var queued = await queue(looks.compactMap { if case .success(let file) = $0 { file } else { nil } }, again)[...]
        return looks.compactMap { look in
            if case .failure(let refusal) = look { return .refused(refusal.description) }
            return queued.popFirst()
        }
    }

    /// - Parameter asked: the configured routes, changed so that sources stay.
    private func look(
        at path: FilePath, _ destination: String?, _ asked: RouteTable, _ volumes: inout [UInt64: Volume],
        _ hashing: Hashing
    ) async -> Result<FileAdmission, Refusal> {
        do {
            guard let identity = try FileLook.look(at: path).identity else {
                throw Refusal("\(path.display): not a regular file, or not there")
            }
            let place = RootedPath(path, roots: shared.settings.sendRoots.compactMap { $0.root(of: path) })
            // Most files of a group share a file system, which costs more to identify than the files.
            if volumes[identity.device] == nil, let found = VolumeIdentity.known(at: path) {
                volumes[identity.device] = Volume(name: found.name)
            }
            let arrival = FoundFile(
                root: place.root, path: place.path, identity: identity, volume: volumes[identity.device])
            // The path of a named file may contain symlinks, as with any program.
            let file = RootedPath("", path)
            var facts = FileProperties()
            try await hashing.learnFirst(of: arrival, by: self.routes, at: file, &facts)
            let routes = destination.map { route(for: place.path, identity.size, facts, to: $0) } ?? asked
            // Other companions, units and markers are for watched folders: a named file goes alone, and at once.
            facts.add(
                try await SidecarFile.metadata(beside: arrival, routes, facts: facts, on: hashing.pool))
            let decision = try await decide(arrival, by: routes, at: file, &facts, hashing)
            switch decision {
            case .plan(let plan): return .success(planned(arrival, plan, why))
            case .rejected(_, let reason): throw Refusal("\(path.display): \(reason)")
            case .unmatched, .needs:
                throw Refusal("\(path.display): no route matches it; name a destination with --to")
            }
        } catch let refusal as Refusal {
            return .failure(refusal)
        } catch let error as ConfigErrors {
            return .failure(Refusal("\(path.display): \(SidecarFile.reason(error))"))
        } catch {
            return .failure(Refusal("\(error)"))
        }
    }

    /// - Returns: the result for each file, in their order.
    private func queue(_ files: [FileAdmission], _ again: Bool) async -> [SendResult] {
        let known: [Job?]
        do {
            known = try await journal.lastSent(files.map { ($0.arrival.path, $0.steps.destinations) })
        } catch {
            return files.map { _ in .refused("\(error)") }
        }
        var answers = [SendResult?](repeating: nil, count: files.count)
        var new: [(place: Int, file: FileAdmission)] = []
        for (place, (file, last)) in zip(files, known).enumerated() {
            let identity = file.arrival.identity
            if let last, identity.isKnown(as: last.file.identity), let answer = await goOn(last, identity, again) {
                answers[place] = answer
            } else {
                var file = file
                file.newerThan = last?.file.id ?? 0
                new.append((place, file))
            }
        }
        for (one, result) in zip(new, await commit(new.map(\.file), why)) {
            answers[one.place] = Self.answer(result)
        }
        return answers.compactMap(\.self)
    }

    /// For a file that the journal knows unchanged. - Returns: nil when it is sent as a new file.
    private func goOn(_ last: Job, _ identity: FileIdentity, _ again: Bool) async -> SendResult? {
        let file = last.file
        do {
            if [.failed, .expired, .cancelled, .gone].contains(file.state) { try await retry(file.id) }
            // None of these has an upload to continue.
            if [.superseded, .rejected].contains(file.state) { return nil }
            guard [.delivered, .duplicate].contains(file.state) else { return .queued(job: file.id) }
            let here = try await journal.standing(of: last)
            let wanted = Set(last.deliveries.map(\.id)).subtracting(again ? [] : here)
            if wanted.isEmpty { return .known(job: file.id, Self.delivered(last)) }
            // A change outside its content does not stop it midway.
            if identity != file.identity { try await journal.refresh(file, identity: identity, at: .now) }
            return try await resend(wanted, file.id) ? .queued(job: file.id) : nil
        } catch {
            return .refused("\(error)")
        }
    }

    private func retry(_ job: Int64) async throws(JournalError) {
        defer { shared.signals.raiseDeliverable() }
        _ = try await journal.retry(job, uptimes: registry.uptimes(), at: .now)
    }

    /// Sends delivered files once more.
    private func resend(_ deliveries: Set<Int64>, _ job: Int64) async throws(JournalError) -> Bool {
        defer { shared.signals.raiseDeliverable() }
        return try await journal.resend(deliveries, of: job, uptimes: registry.uptimes(), at: .now)
    }

    private static func delivered(_ job: Job) -> String {
        let places = job.deliveries.map { row in
            let key = (row.proof?.key ?? row.key).map { " as \(DisplayText.escape($0))" } ?? ""
            return "at \(row.destination)\(key)\(row.endedAt.map { " since \(minute($0))" } ?? "")"
        }
        return "\(job.file.fullPath.display): already \(places.joined(separator: ", ")) (--again sends)"
    }

    /// `2026-11-20 14:03`, by the clock of this machine.
    private static func minute(_ time: WallTime) -> String {
        String(time.rfc3339(in: nil).prefix(16)).replacing("T", with: " ")
    }

    private static func answer(_ result: AdmissionResult) -> SendResult {
        switch result.outcome {
        case .journal(.admitted(let id)), .journal(.known(let id)), .journal(.duplicate(let id, _)): .queued(job: id)
        case .journal, .unmatched, .gone, .unreadable, .later:
            .refused("\(result.arrival.path.display): cannot write the journal now; try later")
        }
    }

    /// The file's route, with another destination. Its source stays.
    private func route(
        for path: FilePath, _ size: Int64, _ facts: FileProperties, to destination: String
    ) -> RouteTable {
        let known = self.routes.route(for: path, size: size, facts: facts)
        var route = known ?? Route(name: "send", to: [destination])
        route.to = [destination]
        for name in [destination, registry[destination]?.storage?.destination].compactMap(\.self)
        where route.names[name] == nil { route.names[name] = registry[name]?.names }
        // A route to other destinations does not have this destination's fields.
        route.with.merge(registry[destination]?.fields ?? [:]) { given, _ in given }
        // Nor does it say which fields a sidecar may set for it.
        let type = registry[destination].flatMap { DestinationKinds.named($0.type)?.type }
        route.sidecarFields = type.map { Set($0.fields.map(\.name)) }
        route.match = RouteMatch()
        return why.routes(RouteTable([route]))
    }

    private static func unknown(_ name: String, _ known: [String]) -> String {
        let hint = Suggestion.hint(name, in: known)
        return "no destination is named '\(name)'\(hint)"
    }
}
