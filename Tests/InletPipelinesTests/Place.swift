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
    private let peer: Peer
    private let sources: TemporaryDirectory
    /// The folder that holds what is delivered; the sandbox's own for R2 and S3, that of the results for VOPI.
    let target: FilePath

    init(_ pipeline: any Pipeline, _ peer: Peer, target: FilePath) throws {
        self.pipeline = pipeline
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
