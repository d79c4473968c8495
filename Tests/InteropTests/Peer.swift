import Foundation
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import Synchronization
import SystemPackage
import Testing

@testable import InletPipelines

/// S3 servers that others wrote.
enum Interop {
    static let reason: String =
        "needs rclone and moto: INLET_INTEROP must name a virtual environment that has both "
        + "(packaging/test.sh makes one where PyPI can be reached)"

    static var isThere: Bool { ReferenceTool.areThere(Peer.Kind.allCases.map(\.program)) }
}

/// A running server; it ends with the last reference.
final class Peer: Sendable {
    enum Kind: String, CaseIterable, CustomTestStringConvertible {
        /// Checks signatures, keeps plain files.
        case rclone
        /// Checks neither signatures nor checksums, and honours `If-None-Match`.
        case moto

        var testDescription: String { rawValue }
        var program: String { self == .rclone ? "rclone" : "moto_server" }
    }

    static let accessKey = "AKIDINTEROPEXAMPLE20"
    static let secretKey = "interop-secret-canary"
    static let bucket = "media"

    let kind: Kind
    let port: Int
    /// What the server keeps; rclone's buckets are folders in it.
    let folder: FilePath
    private let process: Process

    /// - Parameter port: nil = one that the system chooses.
    init(_ kind: Kind, in folder: FilePath, port: Int? = nil) async throws {
        self.kind = kind
        self.folder = folder
        let log = folder.removingLastComponent().appending("\(kind.rawValue)-\(UInt32.random(in: .min ... .max)).log")
        try Data().write(to: URL(fileURLWithPath: log.string))
        process = Process()
        process.executableURL = URL(fileURLWithPath: "\(ReferenceTool.folder ?? "")/bin/\(kind.program)")
        process.arguments = Self.arguments(kind, folder, port ?? 0)
        process.environment = ["PATH": "/usr/bin:/bin", "HOME": folder.string]
        process.standardInput = FileHandle.nullDevice
        let output = try FileHandle(forWritingTo: URL(fileURLWithPath: log.string))
        process.standardOutput = output
        process.standardError = output
        try process.run()
        Leash.hold(process.processIdentifier)
        var found: Int?
        try await eventually("\(kind.rawValue) tells its port") {
            let said = String(decoding: try Data(contentsOf: URL(fileURLWithPath: log.string)), as: UTF8.self)
            found = said.firstMatch(of: /http:\/\/127\.0\.0\.1:(\d+)/).flatMap { Int($0.1) }
            return found != nil
        }
        self.port = found ?? 0
    }

    private static func arguments(_ kind: Kind, _ folder: FilePath, _ port: Int) -> [String] {
        switch kind {
        case .rclone:
            [
                "serve", "s3", "--auth-key", "\(accessKey),\(secretKey)", "--addr", "127.0.0.1:\(port)", "--config",
                "/dev/null", folder.string,
            ]
        case .moto: ["-H", "127.0.0.1", "-p", "\(port)"]
        }
    }

    deinit { kill() }

    /// Ends it at once, as a power cut does.
    func kill() {
        guard process.isRunning else { return }
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}

/// A bucket of a peer, files to deliver to it, and what reads it back.
final class Bucket: Sendable {
    static let part = 5 << 20

    let pipeline: S3Pipeline
    private let client: HTTPClient
    let files: TemporaryDirectory

    init(_ port: Int, _ values: [String: String] = [:], files: TemporaryDirectory) throws {
        self.files = files
        client = HTTPClient(userAgent: "inlet-tests/1")
        var all: [String: ConfigValue] = [
            "endpoint": .string("http://127.0.0.1:\(port)"), "bucket": .string(Peer.bucket),
            "access_key": .secret(Secret(Peer.accessKey)), "secret_key": .secret(Secret(Peer.secretKey)),
            "part_size": .bytes(Int64(Self.part)), "multipart_threshold": .bytes(Int64(Self.part)),
        ]
        for (key, value) in values {
            switch key {
            case "secret_key": all[key] = .secret(Secret(value))
            case "parallel_parts": all[key] = .integer(Int(value) ?? 1)
            default: all[key] = .string(value)
            }
        }
        let section = ConfigSection(values: all, positions: [:], position: SourcePosition(line: 1, column: 1))
        let settings = try S3Settings(section, environment: { _ in nil }, home: nil)
        pipeline = S3Pipeline(
            settings: settings, client: client, hashing: BlockingPool(name: "interop", threads: 2),
            knowledge: S3StoreKnowledge(checksums: StoreChecksums(), address: settings.base.redacted))
    }

    deinit { client.shutdown() }

    /// Makes the bucket: a folder of rclone's, a call to moto.
    static func make(_ kind: Peer.Kind, _ body: (Peer, TemporaryDirectory) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        let served = try directory.makeDirectory("served")
        let peer = try await Peer(kind, in: served)
        if kind == .rclone {
            try directory.makeDirectory(FilePath("served/\(Peer.bucket)"))
        } else {
            try await Bucket(peer.port, files: directory).create()
        }
        try await body(peer, directory)
        peer.kill()
    }

    private func create() async throws {
        _ = try await pipeline.api.send(S3API.Call(method: "PUT"), "making the bucket")
    }

    /// The answer to a call that is signed for another time than now.
    func send(_ call: S3API.Call, at time: WallTime) async throws -> HTTPResponse {
        try await client.send(try pipeline.api.signed(call, at: time))
    }

    /// `count` bytes as a file, and the order to deliver it under `key`.
    func file(_ count: Int, key: String, seed: UInt64 = 1) throws -> (FilePath, DeliveryOrder) {
        let path = try files.write(Self.content(count, seed: seed), to: FilePath("source-\(count)-\(seed)"))
        return (path, try Self.order(path, key: key))
    }

    static func order(_ path: FilePath, key: String) throws -> DeliveryOrder {
        DeliveryOrder(
            id: 1, destination: "here", key: key, mediaType: "video/mp4", fields: [:],
            source: try SourceFile(opening: path).opened)
    }

    func deliver(_ path: FilePath, _ order: DeliveryOrder, _ notes: KeptNotes? = nil) async throws -> Proof {
        let attempt = (notes ?? KeptNotes(nil)).attempt()
        let source = try SourceFile(opening: path)
        guard case .delivered(let proof) = try await pipeline.deliver(source, order, attempt) else {
            throw DeliveryError(.giveUp, .internalFault, "waits")
        }
        return proof
    }

    /// The object's bytes, by GET.
    func get(_ key: String) async throws -> Data {
        let call = S3API.Call(method: "GET", key: key, answerLimit: 100 << 20)
        return Data(try await pipeline.api.send(call, "reading \(key)").body)
    }

    func keys(prefix: String = "") async throws -> [String] {
        let listed = try await pipeline.api.page(prefix)
        return listed.objects.map(\.key).sorted()
    }

    /// Uploads that nobody has ended.
    func openUploads() async throws -> Int {
        let call = S3API.Call(method: "GET", query: [("uploads", "")])
        let response = try await pipeline.api.send(call, "listing uploads")
        return try XMLReader.read(response.body).all("Upload").count
    }

    /// `count` bytes that differ from place to place.
    static func content(_ count: Int, seed: UInt64 = 1) -> Data {
        var generator = SeededGenerator(seed: seed)
        let words = (0..<10_007).map { _ in generator.next() }
        let period = words.withUnsafeBytes { Data($0) }
        var bytes = Data()
        while bytes.count < count { bytes.append(period) }
        return bytes.prefix(count)
    }
}

/// Notes of a delivery; in a file, where a process shall leave them to the next.
final class KeptNotes: Sendable {
    private struct State {
        var entries: [String: [UInt8]]
        var puts: [Set<String>] = []
    }

    private let file: FilePath?
    private let state: Mutex<State>

    init(_ file: FilePath?) {
        self.file = file
        let kept = file.flatMap { try? Data(contentsOf: URL(fileURLWithPath: $0.string)) }
        let entries = kept.flatMap { try? JSONDecoder().decode([String: [UInt8]].self, from: $0) }
        state = Mutex(State(entries: entries ?? [:]))
    }

    var entries: [String: [UInt8]] { state.withLock { $0.entries } }

    /// The names in each put of this process.
    var puts: [Set<String>] { state.withLock { $0.puts } }

    /// - Parameter noted: runs when notes are durable.
    func attempt(noted: @escaping @Sendable (Set<String>) -> Void = { _ in }) -> Attempt {
        let log = CheckpointLog(
            entries: entries,
            write: { notes throws(DeliveryError) in
                self.change { $0.merge(notes) { $1 } }
                self.state.withLock { $0.puts.append(Set(notes.keys)) }
                noted(Set(notes.keys))
            },
            replace: { notes throws(DeliveryError) in
                self.change { $0 = notes }
                self.state.withLock { $0.puts.append(Set(notes.keys)) }
                noted(Set(notes.keys))
            })
        return Attempt(checkpoint: log, isStopping: { false })
    }

    private func change(_ body: (inout [String: [UInt8]]) -> Void) {
        state.withLock { state in
            body(&state.entries)
            guard let file, let encoded = try? JSONEncoder().encode(state.entries) else { return }
            try? encoded.write(to: URL(fileURLWithPath: file.string), options: .atomic)
        }
    }
}
