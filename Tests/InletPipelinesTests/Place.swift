import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// A destination that runs, with a folder for sources beside it.
final class Place: Sendable {
    static let apiKey = "key-canary-71c2"
    static let part = 5 << 20

    /// What a delivery talks to.
    enum Peer: Sendable {
        case spiral(SpiralSandbox)
        case s3(S3Sandbox)
        case gigHive(GigHiveSandbox)
        case vopi(VOPISandbox)
        case roboscope(RoboscopeSandbox)
        case folder
        case memory(MemoryStore)
    }

    let pipeline: any Pipeline
    /// Makes another agent's pipeline to the same destination.
    let again: @Sendable () throws -> any Pipeline
    private let peer: Peer
    private let sources: TemporaryDirectory
    /// The folder that holds what is delivered; the sandbox's own for R2 and S3, that of the results for VOPI.
    let target: FilePath

    init(
        _ pipeline: @autoclosure @escaping @Sendable () throws -> any Pipeline, _ peer: Peer, target: FilePath
    ) throws {
        self.pipeline = try pipeline()
        again = pipeline
        self.peer = peer
        self.target = target
        sources = try TemporaryDirectory()
    }

    /// nil for others than R2.
    var sandbox: SpiralSandbox? { if case .spiral(let sandbox) = peer { sandbox } else { nil } }

    /// nil for others than S3.
    var s3: S3Sandbox? { if case .s3(let sandbox) = peer { sandbox } else { nil } }

    /// nil for others than GigHive.
    var gigHive: GigHiveSandbox? { if case .gigHive(let sandbox) = peer { sandbox } else { nil } }

    /// nil for others than VOPI.
    var vopi: VOPISandbox? { if case .vopi(let sandbox) = peer { sandbox } else { nil } }

    /// nil for others than Roboscope.
    var roboscope: RoboscopeSandbox? { if case .roboscope(let sandbox) = peer { sandbox } else { nil } }

    /// nil for others than the tests' own kind.
    var memory: MemoryStore? { if case .memory(let store) = peer { store } else { nil } }

    var isFolder: Bool { if case .folder = peer { true } else { false } }

    /// Whether no server is asked, whose answers a test could hold up.
    var isLocal: Bool { isFolder || memory != nil }

    // MARK: - Sources and orders

    func write(_ bytes: Data, _ name: FilePath = "source.bin") throws -> FilePath { try sources.write(bytes, to: name) }

    /// `count` bytes as a file, and the order to deliver it under `key`.
    func file(_ count: Int, key: String = "videos/clip.mp4") throws -> (FilePath, DeliveryOrder) {
        let path = try write(content(count), name)
        return (path, try order(path, key: key))
    }

    private var name: FilePath {
        if roboscope != nil { return "source.glb" }
        return gigHive == nil && vopi == nil ? "source.bin" : "source.mp4"
    }

    func order(_ path: FilePath, key: String) throws -> DeliveryOrder {
        var order = DeliveryOrder(
            id: 1, destination: "here", key: key, mediaType: "video/mp4", fields: fields(key),
            source: try SourceFile(opening: path).opened)
        if roboscope != nil { order.upstream = [stored(order)] }
        return order
    }

    /// GigHive has no keys: the label shows it, and an event of its own lets the same bytes be there twice. Of Roboscope's
    /// spaces each takes one model.
    private func fields(_ key: String) -> [String: String] {
        if roboscope != nil { return ["space": key] }
        guard gigHive != nil else { return [:] }
        let sum = key.utf8.reduce(UInt64(5381)) { $0 &* 33 &+ UInt64($1) }
        return ["label": key, "org_name": "Band \(sum)"]
    }

    /// One attempt, with the source opened for it.
    func deliver(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt? = nil, by other: (any Pipeline)? = nil
    ) async throws -> Result<Proof, DeliveryError> {
        let source = try SourceFile(opening: path)
        let pipeline = other ?? pipeline
        do throws(DeliveryError) {
            switch try await pipeline.deliver(source, order, attempt ?? Notes().attempt()) {
            case .delivered(let proof): return .success(proof)
            case .waiting: return .failure(DeliveryError(.giveUp, .internalFault, "waits"))
            }
        } catch {
            return .failure(error)
        }
    }

    /// The error of an attempt that must fail; nil when it delivers.
    func failure(_ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt? = nil) async throws -> DeliveryError? {
        if case .failure(let error) = try await deliver(path, order, attempt) { error } else { nil }
    }

    // MARK: - What is there

    /// Everything delivered, by key.
    func visible() throws -> [String: Data] {
        if let memory { return memory.all.mapValues { Data($0) } }
        if let vopi { return try results(of: vopi) }
        if let roboscope { return roboscope.models() }
        if let stored = sandbox?.objects() ?? s3?.objects() {
            let objects = stored.map {
                ($0.key, try? Data(contentsOf: URL(fileURLWithPath: $0.path.string)))
            }
            return Dictionary(uniqueKeysWithValues: objects.map { ($0.0, $0.1 ?? Data("unreadable".utf8)) })
        }
        if let assets = gigHive?.assets() {
            let entries = try assets.flatMap { asset in
                let bytes = try Data(contentsOf: URL(fileURLWithPath: asset.path.string))
                return asset.entries.map { ($0.label, bytes) }
            }
            return Dictionary(uniqueKeysWithValues: entries)
        }
        let names = try files().filter { !$0.hasSuffix(".tmp") }
        return try Dictionary(
            uniqueKeysWithValues: names.map {
                ($0, try Data(contentsOf: URL(fileURLWithPath: target.pushing(FilePath($0)).string)))
            })
    }

    /// Uploads or temporary files that nobody has ended.
    func leftovers() throws -> [String] {
        try sandbox?.openUploads() ?? s3?.openUploads() ?? gigHive?.openUploads() ?? vopi?.openJobs()
            ?? (roboscope != nil || memory != nil ? [] : nil) ?? files().filter { $0.hasSuffix(".tmp") }
    }

    /// Requests so far.
    func count(_ operation: SpiralOperation) -> Int {
        if let gigHive { return gigHive.traffic.counts[operation.asGigHive] ?? 0 }
        if let vopi { return vopi.traffic.counts[operation.asVOPI] ?? 0 }
        if let roboscope { return roboscope.traffic.counts[operation.asRoboscope] ?? 0 }
        return s3.map { $0.traffic.counts[operation.asS3] ?? 0 } ?? sandbox?.traffic.counts[operation] ?? 0
    }

    /// Requests of any kind so far; a folder is asked nothing.
    var requests: Int {
        switch peer {
        case .spiral(let sandbox): sandbox.traffic.counts.values.reduce(0, +)
        case .s3(let sandbox): sandbox.traffic.counts.values.reduce(0, +)
        case .gigHive(let sandbox): sandbox.traffic.counts.values.reduce(0, +)
        case .vopi(let sandbox): sandbox.traffic.counts.values.reduce(0, +)
        case .roboscope(let sandbox): sandbox.traffic.counts.values.reduce(0, +)
        case .folder, .memory: 0
        }
    }

    /// Lets the server misbehave; a folder has none.
    func misbehave(_ action: FaultAction, at operations: SpiralOperation..., times: Int? = 1) {
        for operation in operations {
            sandbox?.faults.add(Fault(action, at: operation, times: times))
            s3?.faults.add(S3Fault(action, at: operation.asS3, times: times))
            gigHive?.faults.add(GigHiveFault(action, at: operation.asGigHive, times: times))
            vopi?.faults.add(VOPIFault(action, at: operation.asVOPI, times: times))
            roboscope?.faults.add(RoboscopeFault(action, at: operation.asRoboscope, times: times))
        }
    }

    func behave() {
        sandbox?.faults.clear()
        s3?.faults.clear()
        gigHive?.faults.clear()
        vopi?.faults.clear()
        roboscope?.faults.clear()
    }

    private func files() throws -> [String] {
        let all = try FileManager.default.subpathsOfDirectory(atPath: target.string)
        return all.filter { name in
            var isFolder: ObjCBool = false
            let exists = FileManager.default.fileExists(atPath: target.string + "/" + name, isDirectory: &isFolder)
            return exists && !isFolder.boolValue
        }
    }
}

/// `count` bytes that differ from place to place.
func content(_ count: Int, seed: UInt64 = 1) -> Data {
    var generator = SeededGenerator(seed: seed)
    // A prime number of words, so that no block size of anyone's is a multiple of the period.
    let words = (0..<10_007).map { _ in generator.next() }
    let period = words.withUnsafeBytes { Data($0) }
    var bytes = Data()
    while bytes.count < count { bytes.append(period) }
    return bytes.prefix(count)
}

/// Overwrites one byte in place, so that only times tell of it.
func touch(_ path: FilePath, at offset: Int64) throws {
    let file = try FileDescriptor.open(path, .writeOnly, options: .closeOnExec)
    try file.closeAfter { _ = try file.writeAll(toAbsoluteOffset: offset, [0xFF, 0x00]) }
}

func truncate(_ path: FilePath, to size: Int64) throws {
    let file = try FileDescriptor.open(path, .writeOnly, options: .closeOnExec)
    try file.closeAfter { try file.resize(to: size) }
}

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
        let given = values
        return try await body(Place(try factory.place(implementation.type, given), .folder, target: directory.path))
    }
    let sandbox = try SpiralSandbox(
        directory: directory.path, apiKey: Secret(Place.apiKey), faults: FaultPlan(faults), urlLifetime: urlLifetime)
    try await whileServing({ try await sandbox.run() }) {
        let origin = "http://127.0.0.1:\(try await sandbox.port())"
        values["api"] = values["api"] ?? .string(origin)
        values["api_key"] = values["api_key"] ?? .secret(Secret(Place.apiKey))
        values["part_size"] = .bytes(Int64(Place.part))
        if isPublic { values["public_url"] = .string(origin + "/public") }
        let given = values
        try await body(Place(try factory.place("r2", given), .spiral(sandbox), target: directory.path))
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
///
/// - Parameters:
///   - memory: what other processes learned of stores.
///   - proxy: gives the port that leads to the sandbox's.
func withS3Place(
    _ settings: [String: ConfigValue] = [:], rules: S3Sandbox.Rules = S3Sandbox.Rules(pageSize: 2),
    memory: (any StoreChecksumMemory)? = nil, before proxy: @Sendable (Int) throws -> Int = { $0 },
    _ body: @Sendable (Place) async throws -> Void
) async throws {
    let directory = try TemporaryDirectory()
    let factory = PipelineFactory(pool: BlockingPool(name: "pipelines", threads: 4), userAgent: "inlet-tests/1")
    defer { factory.shutdown() }
    if let memory { factory.checksums.use(memory) }
    let usual: [String: ConfigValue] = [
        "bucket": .string("sandbox"), "access_key": .secret(Secret(S3Account.accessKey)),
        "secret_key": .secret(S3Account.secretKey), "part_size": .bytes(Int64(Place.part)),
        "multipart_threshold": .bytes(Int64(Place.part)), "verify": .string("md5"),
    ]
    let sandbox = try S3Sandbox(directory: directory.path, account: S3Account.standard, rules: rules)
    try await whileServing({ try await sandbox.run() }) {
        var values = usual.merging(settings) { $1 }
        values["endpoint"] = .string("http://127.0.0.1:\(try proxy(try await sandbox.port()))")
        let given = values
        try await body(Place(try factory.place("s3", given), .s3(sandbox), target: directory.path))
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
        let all = settings.merging(given) { $1 }
        try await body(Place(try factory.place("gighive", all), .gigHive(sandbox), target: directory))
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
        try make(DestinationSettings(name: "here", type: type, values: section(values))).pipeline
    }
}

/// One way to configure one type of destination; the contract holds for each.
struct Implementation: Sendable, CustomTestStringConvertible {
    var type: String
    var values: [String: String]

    var testDescription: String {
        ([type] + values.keys.sorted().map { "\($0): \(values[$0] ?? "")" }).joined(separator: " ")
    }

    static let all: [Implementation] = [
        .r2("seed"), .r2("r2"), .r2("v1"), .r2("v1", verify: "size"), .s3("md5"), .s3("crc32c"), .s3("sha256"),
        .s3("crc64nvme"), .s3("size"), .s3("md5", ifExists: "version"), .s3("md5", ifExists: "fail"),
        .s3("md5", ifExists: "skip-same"),
        .gigHive("multipart"), .gigHive("tus"), .vopi("api-key"), .vopi("bearer"), .roboscope,
        .folder("read-back"), .folder("size"), .memory,
    ]

    /// Those with a step between the order and the first byte, at which a test can change the source.
    static let staged = all.filter { $0.values["transport"] != "multipart" && $0.sendsBytes }

    /// GigHive and VOPI refuse empty files.
    var takesEmptyFiles: Bool { !["gighive", "vopi"].contains(type) }

    /// Roboscope registers what another destination holds: of the source it only asks whether it still is what was admitted.
    var sendsBytes: Bool { type != "roboscope" }

    static func r2(_ dialect: String, verify: String = "md5") -> Implementation {
        Implementation(type: "r2", values: ["dialect": dialect, "verify": verify])
    }

    static func s3(_ verify: String = "md5", ifExists: String = "overwrite") -> Implementation {
        Implementation(type: "s3", values: ["verify": verify, "if_exists": ifExists])
    }

    static func gigHive(_ transport: String) -> Implementation {
        Implementation(type: "gighive", values: ["transport": transport])
    }

    static func folder(_ verify: String) -> Implementation {
        Implementation(type: "folder", values: ["verify": verify])
    }

    /// - Parameter generation: which of the two servers it is, by its login: `api-key` or `bearer`.
    static func vopi(_ generation: String) -> Implementation {
        Implementation(type: "vopi", values: ["generation": generation])
    }

    /// The kind of the tests' own.
    static let memory = Implementation(type: "memory", values: [:])

    /// A model that is stored already.
    static let roboscope = Implementation(type: "roboscope", values: [:])
}
