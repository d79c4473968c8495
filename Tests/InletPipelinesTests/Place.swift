import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// One way to configure one type of destination; the contract holds for each.
struct Implementation: Sendable, CustomTestStringConvertible {
    var type: String
    var values: [String: String]

    var testDescription: String {
        ([type] + values.keys.sorted().map { "\($0): \(values[$0] ?? "")" }).joined(separator: " ")
    }

    static let all: [Implementation] = [
        .r2("seed"), .r2("r2"), .r2("v1"), .r2("v1", verify: "size"), .folder("read-back"), .folder("size"),
    ]

    static func r2(_ dialect: String, verify: String = "md5") -> Implementation {
        Implementation(type: "r2", values: ["dialect": dialect, "verify": verify])
    }

    static func folder(_ verify: String) -> Implementation {
        Implementation(type: "folder", values: ["verify": verify])
    }
}

/// A destination that runs, with a folder for sources beside it.
final class Place: Sendable {
    static let apiKey = "key-canary-71c2"
    static let part = 5 << 20

    let pipeline: any Pipeline
    /// nil for a folder.
    let sandbox: SpiralSandbox?
    private let sources: TemporaryDirectory
    /// The folder that holds what is delivered; the sandbox's own for R2.
    let target: FilePath

    fileprivate init(_ pipeline: any Pipeline, _ sandbox: SpiralSandbox?, target: FilePath) throws {
        self.pipeline = pipeline
        self.sandbox = sandbox
        self.target = target
        sources = try TemporaryDirectory()
    }

    // MARK: - Sources and orders

    func write(_ bytes: Data, _ name: FilePath = "source.bin") throws -> FilePath { try sources.write(bytes, to: name) }

    /// `count` bytes as a file, and the order to deliver it under `key`.
    func file(_ count: Int, key: String = "videos/clip.mp4") throws -> (FilePath, DeliveryOrder) {
        let path = try write(content(count))
        return (path, try order(path, key: key))
    }

    func order(_ path: FilePath, key: String) throws -> DeliveryOrder {
        DeliveryOrder(
            id: 1, destination: "here", key: key, mediaType: "video/mp4", fields: [:],
            source: try SourceFile(opening: path).opened)
    }

    /// One attempt, with the source opened for it.
    func deliver(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt? = nil
    ) async throws -> Result<Proof, DeliveryError> {
        let source = try SourceFile(opening: path)
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
        if let sandbox {
            let objects = sandbox.objects().map {
                ($0.key, try? Data(contentsOf: URL(fileURLWithPath: $0.path.string)))
            }
            return Dictionary(uniqueKeysWithValues: objects.map { ($0.0, $0.1 ?? Data("unreadable".utf8)) })
        }
        let names = try files().filter { !$0.hasSuffix(".tmp") }
        return try Dictionary(
            uniqueKeysWithValues: names.map {
                ($0, try Data(contentsOf: URL(fileURLWithPath: target.pushing(FilePath($0)).string)))
            })
    }

    /// Uploads or temporary files that nobody has ended.
    func leftovers() throws -> [String] {
        try sandbox.map { $0.openUploads() } ?? files().filter { $0.hasSuffix(".tmp") }
    }

    /// Requests so far.
    func count(_ operation: SpiralOperation) -> Int { sandbox?.traffic.counts[operation] ?? 0 }

    private func files() throws -> [String] {
        let all = try FileManager.default.subpathsOfDirectory(atPath: target.string)
        return all.filter { name in
            var isFolder: ObjCBool = false
            let exists = FileManager.default.fileExists(atPath: target.string + "/" + name, isDirectory: &isFolder)
            return exists && !isFolder.boolValue
        }
    }
}

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
    guard implementation.type == "r2" else {
        values["path"] = values["path"] ?? .string(directory.path.string)
        return try await body(Place(try factory.place(implementation.type, values), nil, target: directory.path))
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
        try await body(Place(try factory.place("r2", values), sandbox, target: directory.path))
        // First, so that no connection of ours outlives its server.
        factory.shutdown()
        group.cancelAll()
        try await group.waitForAll()
    }
}

extension PipelineFactory {
    fileprivate func place(_ type: String, _ values: [String: ConfigValue]) throws -> any Pipeline {
        let section = ConfigSection(values: values, positions: [:], position: SourcePosition(line: 1, column: 1))
        return try make(DestinationSettings(name: "here", type: type, values: section)).pipeline
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
    let file = try FileDescriptor.open(path, .writeOnly)
    try file.closeAfter { _ = try file.writeAll(toAbsoluteOffset: offset, [0xFF, 0x00]) }
}

func truncate(_ path: FilePath, to size: Int64) throws {
    let file = try FileDescriptor.open(path, .writeOnly)
    try file.closeAfter { try file.resize(to: size) }
}
