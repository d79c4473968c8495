internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization
internal import SystemPackage

/// Many small files for one destination, read one after the other and sent together. This knows only the usual end: a
/// `DeliveryAttempt` deals with special files, and with everything that goes wrong.
struct DeliveryBurst: Sendable {
    /// A started claim that needs an attempt of its own, and the answer that it continues from.
    typealias Alone = (claim: Claim, first: FirstAnswer?)
    typealias Report = @Sendable (_ ended: [LaneSlots.Ended], _ alone: [Alone]) -> Void

    /// The most files of one.
    static let most = 64
    /// The most bytes of files of all destinations that are on their way or wait for a connection. A destination may have
    /// a few files beyond that. libcurl keeps two more copies of each.
    private static let mostBytes: Int64 = 6 << 20
    private static let fewest = 4

    let stage: DeliveryStage
    let destination: Destination
    let pipeline: any BurstPipeline
    /// The size of the largest files that are sent so.
    let limit: Int
    /// How many may be on their way at once.
    let connections: Int

    /// nil where the destination sends no files so now.
    init?(_ destination: Destination?, _ stage: DeliveryStage) {
        guard let destination, destination.storage == nil, !destination.closesBatches,
            let pipeline = destination.pipeline as? any BurstPipeline, let limit = pipeline.burstLimit
        else { return nil }
        (self.stage, self.destination, self.pipeline, self.limit) = (stage, destination, pipeline, limit)
        connections = pipeline.burstConnections
    }

    /// How many more may be read, so that each connection has one at hand when its own has gone.
    ///
    /// - Parameter sent: how many were sent together and have not come back.
    func room(besides sent: Int) -> Int {
        guard stage.burstBytes.load(ordering: .relaxed) < Self.mostBytes else { return max(0, Self.fewest - sent) }
        return min(Self.most, max(0, connections + max(connections, Self.most) - sent))
    }

    private var shared: Shared { stage.shared }

    /// Whether the delivery is a usual one: its first attempt to bring a small file that nothing else depends on.
    func takes(_ claim: Claim) -> Bool {
        let (file, delivery) = (claim.file, claim.delivery)
        return file.identity.size <= limit && claim.original == nil && claim.checkpoint.isEmpty
            && delivery.attempts == 1 && delivery.crashes == 0 && delivery.waits == 0 && delivery.key != nil
            && delivery.afterID == nil && delivery.closes == nil && !file.root.isEmpty
            && !shared.fleet.contents.isAsked(about: file) && shared.fleet.places.maySend(file)
    }

    /// Reads the files and sends them. Blocks while it reads.
    ///
    /// - Parameter report: called more than once, from any thread, until each claim was reported.
    func start(_ claims: [Claim], _ report: @escaping Report) {
        var (files, members, alone): ([BurstFile], [Claim], [Alone]) = ([], [], [])
        var folders = FolderCache("")
        for claim in claims {
            // An attempt says why it may not be sent any longer.
            if shared.fleet.places.maySend(claim.file), let file = read(claim, &folders) {
                files.append(file)
                members.append(claim)
            } else {
                alone.append((claim, nil))
            }
        }
        folders.close()
        if !members.isEmpty {
            do throws(DeliveryError) {
                try send(files, of: members, report)
            } catch {
                // An attempt finds the same, and knows what follows.
                alone += members.map { ($0, nil) }
            }
        }
        if !alone.isEmpty { report([], alone) }
    }

    /// The admitted content; nil where it cannot be read, or is another.
    private func read(_ claim: Claim, _ folders: inout FolderCache) -> BurstFile? {
        let file = claim.file
        if folders.root != file.root { folders = FolderCache(file.root) }
        let rule = shared.settings.sendRoots.first { $0.covers(file.root) }?.sources ?? SourceRule()
        // An attempt says what is wrong.
        guard let content = try? folders.content(of: file.path, known: file.identity, rule) else { return nil }
        return BurstFile(shared.plainOrder(file, claim.delivery), content: content)
    }

    private func send(
        _ files: [BurstFile], of members: [Claim], _ report: @escaping Report
    ) throws(DeliveryError) {
        let start = ContinuousClock.now
        let bytes = files.map { Int64($0.content.count) }
        let burst = try pipeline.burst(files) { answers in
            stage.burstBytes.subtract(answers.reduce(0) { $0 + bytes[$1.index] }, ordering: .relaxed)
            shared.transfers.remove(answers.map { members[$0.index].delivery.id })
            var (ended, alone): ([LaneSlots.Ended], [Alone]) = ([], [])
            for answer in answers {
                let claim = members[answer.index]
                switch answer.end {
                case .delivered(let proof):
                    let (outcome, said) = DeliveryAttempt(claim, stage).delivered(proof, at: destination, since: start)
                    ended.append(LaneSlots.Ended(claim: claim, settlement: outcome, report: said))
                case .continues(let first): alone.append((claim, first))
                }
            }
            report(ended, alone)
        }
        let refs = members.map { (AgentEvent.JobRef($0.file, $0.delivery), $0.file.identity.size) }
        let cancelled = shared.transfers.add(refs, since: .now, cancel: burst.cancel)
        // A call that ended all transfers may not have found these.
        for index in Task.isCancelled ? Array(members.indices) : cancelled { burst.cancel(index) }
        shared.log.emit(members.map { DeliveryAttempt($0, stage).started($0.delivery.key ?? "") })
        for _ in members { Failpoint.claimed.reached() }
        stage.burstBytes.add(bytes.reduce(0, +), ordering: .relaxed)
        burst.start()
    }
}
