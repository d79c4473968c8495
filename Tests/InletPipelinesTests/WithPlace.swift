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
    let directory = try TemporaryDirectory()
    let factory = PipelineFactory(pool: BlockingPool(name: "pipelines", threads: 4), userAgent: "inlet-tests/1")
    defer { factory.shutdown() }
    var values = implementation.values.mapValues { ConfigValue.string($0) }
    values.merge(settings) { $1 }
    if implementation.type == "s3" { return try await withS3Place(values, directory.path, factory, body) }
    guard implementation.type == "r2" else {
        values["path"] = values["path"] ?? .string(directory.path.string)
        return try await body(Place(try factory.place(implementation.type, values), .folder, target: directory.path))
    }
    let sandbox = try SpiralSandbox(
        directory: directory.path, apiKey: Secret(Place.apiKey), faults: FaultPlan(faults), urlLifetime: urlLifetime)
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await sandbox.run() }
        let origin = "http://127.0.0.1:\(try await sandbox.port())"
        values["api"] = values["api"] ?? .string(origin)
        values["api_key"] = values["api_key"] ?? .secret(Secret(Place.apiKey))
        values["part_size"] = .bytes(Int64(Place.part))
        if isPublic { values["public_url"] = .string(origin + "/public") }
        try await body(Place(try factory.place("r2", values), .spiral(sandbox), target: directory.path))
        // First, so that no connection of ours outlives its server.
        factory.shutdown()
        group.cancelAll()
        try await group.waitForAll()
    }
}

/// The account of the S3 sandbox.
enum S3Account {
    static let accessKey = "AKIDEXAMPLE71C2"
    static let secretKey = Secret("secret-canary-71c2")

    static let standard = S3Sandbox.Account(accessKey: accessKey, secretKey: secretKey, region: "us-east-1")
}

private func withS3Place(
    _ given: [String: ConfigValue], _ directory: FilePath, _ factory: PipelineFactory,
    _ body: @Sendable (Place) async throws -> Void
) async throws {
    let settings: [String: ConfigValue] = [
        "bucket": .string("sandbox"), "access_key": .secret(Secret(S3Account.accessKey)),
        "secret_key": .secret(S3Account.secretKey), "part_size": .bytes(Int64(Place.part)),
        "multipart_threshold": .bytes(Int64(Place.part)),
    ]
    let values = settings.merging(given) { $1 }
    // Small pages, so that every listing has several.
    let rules = S3Sandbox.Rules(pageSize: 2)
    let sandbox = try S3Sandbox(directory: directory, account: S3Account.standard, rules: rules)
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await sandbox.run() }
        let origin = "http://127.0.0.1:\(try await sandbox.port())"
        let place = try factory.place("s3", values.merging(["endpoint": .string(origin)]) { given, _ in given })
        try await body(Place(place, .s3(sandbox), target: directory))
        // First, so that no connection of ours outlives its server.
        factory.shutdown()
        group.cancelAll()
        try await group.waitForAll()
    }
}

extension SpiralOperation {
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

extension PipelineFactory {
    func place(_ type: String, _ values: [String: ConfigValue]) throws -> any Pipeline {
        let section = ConfigSection(values: values, positions: [:], position: SourcePosition(line: 1, column: 1))
        return try make(DestinationSettings(name: "here", type: type, values: section)).pipeline
    }
}
