import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage

/// Runs `body` on a destination of its own. `settings` go on top of the implementation's.
func withPlace(
    _ implementation: Implementation, faults: Fault..., settings: [String: ConfigValue] = [:], isPublic: Bool = false,
    urlLifetime: Duration = .seconds(3600), _ body: @Sendable (Place) async throws -> Void
) async throws {
    var values = implementation.values.mapValues { ConfigValue.string($0) }
    values.merge(settings) { $1 }
    if implementation.type == "memory" { return try await withMemoryPlace(values, body) }
    if implementation.type == "s3" { return try await withS3Place(values, body) }
    let directory = try TemporaryDirectory()
    if implementation.type == "vopi" { return try await withVOPIPlace(values, directory, body) }
    let factory = PipelineFactory(pool: BlockingPool(name: "pipelines", threads: 4), userAgent: "inlet-tests/1")
    defer { factory.shutdown() }
    if implementation.type == "roboscope" { return try await withRoboscopeModels(factory, body) }
    if implementation.type == "gighive" { return try await withGigHivePlace(values, directory.path, factory, body) }
    guard implementation.type == "r2" else {
        values["path"] = values["path"] ?? .string(directory.path.string)
        return try await body(Place(try factory.place(implementation.type, values), .folder, target: directory.path))
    }
    let sandbox = try SpiralSandbox(
        directory: directory.path, apiKey: Secret(Place.apiKey), faults: FaultPlan(faults), urlLifetime: urlLifetime)
    try await whileServing({ try await sandbox.run() }) {
        let origin = "http://127.0.0.1:\(try await sandbox.port())"
        values["api"] = values["api"] ?? .string(origin)
        values["api_key"] = values["api_key"] ?? .secret(Secret(Place.apiKey))
        values["part_size"] = .bytes(Int64(Place.part))
        if isPublic { values["public_url"] = .string(origin + "/public") }
        try await body(Place(try factory.place("r2", values), .spiral(sandbox), target: directory.path))
        // First, so that no connection of ours outlives its server.
        factory.shutdown()
    }
}

private func withMemoryPlace(
    _ values: [String: ConfigValue], _ body: @Sendable (Place) async throws -> Void
) async throws {
    let kind = MemoryKind()
    let factory = PipelineFactory(
        pool: BlockingPool(name: "pipelines", threads: 4), userAgent: "inlet-tests/1", kinds: [kind])
    defer { factory.shutdown() }
    try await body(Place(try factory.place("memory", values), .memory(kind.store), target: "/nowhere"))
}

/// The account of the S3 sandbox.
enum S3Account {
    static let accessKey = "AKIDEXAMPLE71C2"
    static let secretKey = Secret("secret-canary-71c2")

    static let standard = S3Sandbox.Account(accessKey: accessKey, secretKey: secretKey, region: "us-east-1")
}

/// Runs `body` on an S3 destination of its own; pages are small, so that every listing has several.
func withS3Place(
    _ settings: [String: ConfigValue] = [:], rules: S3Sandbox.Rules = S3Sandbox.Rules(pageSize: 2),
    _ body: @Sendable (Place) async throws -> Void
) async throws {
    let directory = try TemporaryDirectory()
    let factory = PipelineFactory(pool: BlockingPool(name: "pipelines", threads: 4), userAgent: "inlet-tests/1")
    defer { factory.shutdown() }
    let usual: [String: ConfigValue] = [
        "bucket": .string("sandbox"), "access_key": .secret(Secret(S3Account.accessKey)),
        "secret_key": .secret(S3Account.secretKey), "part_size": .bytes(Int64(Place.part)),
        "multipart_threshold": .bytes(Int64(Place.part)),
    ]
    let sandbox = try S3Sandbox(directory: directory.path, account: S3Account.standard, rules: rules)
    try await whileServing({ try await sandbox.run() }) {
        var values = usual.merging(settings) { $1 }
        values["endpoint"] = .string("http://127.0.0.1:\(try await sandbox.port())")
        try await body(Place(try factory.place("s3", values), .s3(sandbox), target: directory.path))
        // First, so that no connection of ours outlives its server.
        factory.shutdown()
    }
}

private func withGigHivePlace(
    _ given: [String: ConfigValue], _ directory: FilePath, _ factory: PipelineFactory,
    _ body: @Sendable (Place) async throws -> Void
) async throws {
    let password = Secret(GigHivePlace.password)
    let sandbox = try GigHiveSandbox(
        directory: directory, passwords: ["admin": password, "uploader": password, "viewer": password],
        rules: GigHiveRules(hookWait: .zero))
    try await whileServing({ try await sandbox.run() }) {
        let settings: [String: ConfigValue] = [
            "url": .string("http://127.0.0.1:\(try await sandbox.port())"), "user": .string("uploader"),
            "password": .secret(password), "chunk_size": .bytes(Int64(Place.part)),
        ]
        let place = try factory.place("gighive", settings.merging(given) { $1 })
        try await body(Place(place, .gigHive(sandbox), target: directory))
        // First, so that no connection of ours outlives its server.
        factory.shutdown()
    }
}

extension SpiralOperation {
    /// The call of GigHive that does the same work.
    var asGigHive: GigHiveOperation {
        switch self {
        case .create: .tusCreate
        case .part: .tusPatch
        case .single: .upload
        case .complete: .finalize
        case .abort: .tusDelete
        default: .other
        }
    }

    /// The call of S3 that does the same work.
    var asS3: S3Operation {
        switch self {
        case .create: .createMultipartUpload
        case .part: .uploadPart
        case .single, .presign: .putObject
        case .complete: .completeMultipartUpload
        case .abort: .abortMultipartUpload
        default: .headObject
        }
    }
}

extension Pipeline {
    /// One attempt at the file that is at `path` now.
    func attempt(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws -> Result<DeliveryOutcome, DeliveryError> {
        let source = try SourceFile(opening: path)
        do throws(DeliveryError) {
            return .success(try await deliver(source, order, attempt))
        } catch {
            return .failure(error)
        }
    }
}

extension PipelineFactory {
    func place(_ type: String, _ values: [String: ConfigValue]) throws -> any Pipeline {
        let section = ConfigSection(values: values, positions: [:], position: SourcePosition(line: 1, column: 1))
        return try make(DestinationSettings(name: "here", type: type, values: section)).pipeline
    }
}
