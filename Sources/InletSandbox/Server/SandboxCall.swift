import Foundation
import HTTPTypes
import Hummingbird
import InletCore
import NIOCore

/// A request on its way through a sandbox's table, as handlers see it.
struct SandboxCall {
    let request: Request
    /// Decoded method, path, query and host.
    let address: DecodedRequest
    /// The values at the places of the row's pattern.
    let places: [String: String]
    /// The fault that the handler must apply.
    let fault: FaultAction?
    let channel: any Channel
    /// The ETag for `wrongETag(.random)`.
    let randomTag: [UInt8]
    var body: BodyReader

    var fields: HTTPFields { request.headers }
    /// The host that the client used, so that it can reach the addresses in answers.
    var host: String { address.host }

    subscript(place: String) -> String { places[place] ?? "" }
    func query(_ name: String) -> String? { address.value(name) }

    /// The ETag to answer for a body with this MD5, without quotes; wrong only by a fault.
    func etag(_ md5: [UInt8]) -> String {
        switch fault {
        case .wrongETag(.random): randomTag.hex
        case .wrongETag(.constant): MD5.bytes(of: md5).hex
        default: md5.hex
        }
    }

    /// The answer to a stored body.
    func stored(etag: String, _ fields: HTTPFields = [:]) -> Response {
        var fields = fields
        if fault != .missingETag { fields[.eTag] = "\"\(etag)\"" }
        return Response(status: .ok, headers: fields)
    }

    /// Writes the body, which must have a length of at most `limit` bytes, to `file`.
    mutating func receive(into file: inout ReceivedFile, limit: Int64 = .max) async throws {
        guard let length = body.expected else { throw SandboxRefusal.missingLength }
        guard length <= limit else {
            throw SandboxRefusal(400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed object size.")
        }
        while let chunk = try await body.next() { try file.write(chunk) }
    }
}

extension HTTPFields {
    /// By a name that is a valid token; others are ignored.
    subscript(name: String) -> String? {
        get { HTTPField.Name(name).flatMap { self[$0] } }
        set { if let name = HTTPField.Name(name) { self[name] = newValue } }
    }
}

/// A request's body, read once, chunk by chunk, at the pace and to the byte of a fault.
struct BodyReader {
    private var chunks: RequestBody.AsyncIterator
    private let channel: any Channel
    private let fault: FaultAction?
    private let count: @Sendable (Int) -> Void
    /// Content-Length, if the client gave one.
    let expected: Int?
    private(set) var received = 0

    /// - Parameter count: Receives the length of each chunk.
    init(
        _ request: Request, channel: any Channel, fault: FaultAction?, count: @escaping @Sendable (Int) -> Void
    ) {
        chunks = request.body.makeAsyncIterator()
        expected = request.headers[.contentLength].flatMap(Int.init)
        self.channel = channel
        self.fault = fault
        self.count = count
    }

    /// The next chunk; nil at the end. Throws `incompleteBody` if the connection ended before Content-Length.
    mutating func next() async throws -> ByteBuffer? {
        if case .reset(let limit)? = fault, received >= limit { try await ConnectionDropped.drop(channel) }
        guard let chunk = try await chunks.next() else {
            if case .reset? = fault { try await ConnectionDropped.drop(channel) }
            guard received >= expected ?? 0 else { throw SandboxRefusal.incompleteBody }
            return nil
        }
        received += chunk.readableBytes
        count(chunk.readableBytes)
        if case .slowRead(let rate)? = fault {
            try await Task.sleep(for: .seconds(Double(chunk.readableBytes) / Double(max(rate, 1))))
        }
        return chunk
    }

    mutating func discard() async throws {
        while try await next() != nil {}
    }

    /// The whole body, of at most 8 MiB.
    mutating func whole() async throws -> Data {
        var whole = Data()
        while let chunk = try await next() {
            whole.append(contentsOf: chunk.readableBytesView)
            guard whole.count <= 8 << 20 else {
                throw SandboxRefusal(413, "EntityTooLarge", "This body has at most 8 MiB.")
            }
        }
        return whole
    }

    /// The whole body as a JSON value of at most 8 MiB.
    mutating func json() async throws -> SandboxJSON {
        let whole = try await whole()
        do {
            return try JSON.decode(whole, as: SandboxJSON.self)
        } catch {
            throw SandboxRefusal.badRequest("The body is not JSON.")
        }
    }
}

/// Ends a request whose socket a fault has closed, where no answer can be written.
struct ConnectionDropped: Error {
    /// Closes `channel`, and ends the request.
    static func drop(_ channel: any Channel) async throws -> Never {
        // The other end may have closed it.
        try? await channel.close()
        throw ConnectionDropped()
    }

    /// Never answers: the client, a test or the end of the sandbox closes `channel`.
    static func withhold(_ channel: any Channel) async throws -> Never {
        // A half-closed connection of a client that is gone would stay held for ever. A closed one is not held.
        try? await channel.setOption(ChannelOptions.allowRemoteHalfClosure, value: false).get()
        let (closed, end) = AsyncStream.makeStream(of: Never.self)
        channel.closeFuture.whenComplete { _ in end.finish() }
        for await _ in closed {}
        throw ConnectionDropped()
    }
}
