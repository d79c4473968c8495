package import InletCore
package import InletLinux
package import InletTransfer
package import SystemPackage

/// Turns YAML into the JSON that says the same; throws an error whose description says what is wrong. The name is for that.
package typealias YAMLReading = @Sendable (_ bytes: [UInt8], _ file: FilePath) throws -> [UInt8]

/// Registers at a Roboscope server what another destination holds, imports markers, and keeps the sessions of folders.
///
/// Every step finds out what is there before it changes anything, so that it may be done again at any time. What was
/// registered is never taken back: the URL that was there before is in the proof.
package struct RoboscopePipeline: Pipeline {
    let api: RoboscopeAPI
    private let pool: BlockingPool
    private let readYAML: YAMLReading?
    private let rhythm: SessionRhythm
    private let memory = RoboscopeMemory()

    package init(
        settings: RoboscopeSettings, client: HTTPClient, pool: BlockingPool, readYAML: YAMLReading?,
        rhythm: SessionRhythm = SessionRhythm()
    ) {
        api = RoboscopeAPI(settings: settings, client: client)
        self.pool = pool
        self.readYAML = readYAML
        self.rhythm = rhythm
    }

    package func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        if attempt.isStopping() { throw .stopping }
        let job = try job(source.path, source, order, attempt)
        if let batch = order.batch, batch.role == .closing { return try await SessionKeeping(job: job).close(batch) }
        try job.checkSource()
        return try await run(job)
    }

    /// A unit's end has no source of its own, and of a file that is stored only its URL is needed.
    package func conclude(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome? {
        let job = try job(path, nil, order, attempt)
        if let batch = order.batch, batch.role == .closing {
            if attempt.isStopping() { throw .stopping }
            return try await SessionKeeping(job: job).close(batch)
        }
        guard job.fields.role.needsStorage, !order.upstream.isEmpty else { return nil }
        if attempt.isStopping() { throw .stopping }
        return try await run(job)
    }

    /// Nothing is taken back: what a space says now may be somebody else's already, and markers that were imported are what
    /// their file says.
    package func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {}

    package func probe() async throws(DeliveryError) -> String { try await api.probe() }

    private func run(_ job: RoboscopeJob) async throws(DeliveryError) -> DeliveryOutcome {
        switch job.fields.role {
        case .model, .scan, .preview: try await Registration(job: job).deliver()
        case .markers: try await MarkerDelivery(job: job).deliver()
        case .session: try await SessionKeeping(job: job).apply(job.order.batch)
        case .file: try await SessionKeeping(job: job).join(job.order.batch)
        }
    }

    private func job(
        _ place: FilePath, _ source: SourceFile?, _ order: DeliveryOrder, _ attempt: Attempt
    ) throws(DeliveryError) -> RoboscopeJob {
        let path = order.path.isEmpty ? FilePath(root: nil, place.lastComponent.map { [$0] } ?? []) : order.path
        let fields: RoboscopeFields
        do {
            fields = try RoboscopeFields(order.fields, path: path)
        } catch {
            throw DeliveryError(
                .giveUp, .badRequest, "\(path.display): \(error.field) \(error.reason); correct 'with:' of its route")
        }
        return RoboscopeJob(
            api: api, memory: memory, path: path, opened: source, order: order, attempt: attempt, fields: fields,
            pool: pool, readYAML: readYAML, rhythm: rhythm)
    }
}
