import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import Synchronization
import SystemPackage

extension ScriptedServer {
    func url(_ path: String = "/") throws -> HTTPURL {
        try HTTPURL("http://127.0.0.1:\(port)\(path)", rules: .configured(allowHTTP: false))
    }
}

/// What a script has seen, for the test to read.
final class Seen<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])

    func append(_ value: Value) { values.withLock { $0.append(value) } }

    var all: [Value] { values.withLock { $0 } }
}

func makeClient(trust: Trust = .system, connectionsPerHost: Int = 32) -> HTTPClient {
    HTTPClient(trust: trust, connectionsPerHost: connectionsPerHost, userAgent: "inlet-tests/1")
}

/// The error of a send that must fail; an answer comes back as a failed expectation of the caller.
func failure(_ client: HTTPClient, _ request: HTTPRequest, meter: TransferMeter? = nil) async -> TransferError? {
    do throws(TransferError) {
        _ = try await client.send(request, meter: meter)
        return nil
    } catch { return error }
}

/// The fastest of up to five attempts, as soon as one takes less than `bound`: a busy machine makes some of them late, what
/// is slow by itself is slow each time.
func fastest(below bound: Duration, _ attempt: () async throws -> Duration) async throws -> Duration {
    var best = try await attempt()
    for _ in 0..<4 where best >= bound { best = min(best, try await attempt()) }
    return best
}

/// `count` bytes that differ from place to place.
func pattern(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    // A prime number of words, so that no block size of anyone's is a multiple of the period.
    let words = (0..<10_007).map { _ in generator.next() }
    return words.withUnsafeBytes { period in
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + period.count)
        while bytes.count < count { bytes.append(contentsOf: period) }
        return Array(bytes.prefix(count))
    }
}

/// A sparse file of `size` bytes.
func sparseFile(_ directory: TemporaryDirectory, size: Int64) throws -> FilePath {
    let path = directory.path.appending("sparse")
    let descriptor = try FileDescriptor.open(
        path, .writeOnly, options: [.create, .closeOnExec], permissions: [.ownerReadWrite])
    try descriptor.closeAfter { try descriptor.resize(to: size) }
    return path
}
