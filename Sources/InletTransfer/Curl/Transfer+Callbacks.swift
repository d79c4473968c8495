import CCurl
import InletCore
import InletLinux
import Synchronization

/// libcurl's callbacks during a transfer, on the loop's thread. The context is the unretained `Transfer`, which its
/// loop keeps until the handle is removed.
extension Transfer {
    func setCallbacks() {
        let context = Unmanaged.passUnretained(self).toOpaque()
        easy.note(
            inlet_curl_set_callbacks(easy.handle, context, Self.takeBody, Self.takeHeader, Self.takeProgress))
        if request.hasBody, inlineBody == nil {
            easy.note(inlet_curl_set_upload(easy.handle, context, Self.giveBody, Self.rewind))
        }
    }

    static func from(_ context: UnsafeMutableRawPointer?) -> Transfer? {
        context.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let takeBody: curl_write_callback = { bytes, _, count, context in
        guard let transfer = from(context), let bytes else { return 0 }
        transfer.deadlines.answerMoved(at: transfer.time.now)
        return transfer.take(UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
    }

    private static let takeHeader: curl_write_callback = { bytes, _, count, context in
        guard let transfer = from(context), let bytes else { return 0 }
        let hadFields = transfer.answer.hasFields
        if let refusal = transfer.answer.take(line: UnsafeRawBufferPointer(start: bytes, count: count)) {
            transfer.refuseAnswer(refusal.why, refusal.code)
            return 0
        }
        if transfer.answer.hasFields, !hadFields, !transfer.offerToSink() { return 0 }
        // curl then stops sending, or the rest has been refused already.
        if transfer.answer.status >= 300 { transfer.deadlines.bodyEnded(at: transfer.time.now) }
        transfer.deadlines.answerMoved(at: transfer.time.now)
        return count
    }

    private static let takeProgress: curl_xferinfo_callback = { context, expected, received, _, sent in
        from(context)?.progress(sent: Int64(sent), received: Int64(received), of: expected > 0 ? Int64(expected) : nil)
        return 0
    }

    private static let giveBody: curl_read_callback = { buffer, size, count, context in
        guard let transfer = from(context), let buffer else { return Int(CURL_READFUNC_ABORT) }
        let room = UnsafeMutableRawBufferPointer(start: buffer, count: size * count)
        return transfer.givePiece(room, now: .now)
    }

    private static let rewind: curl_seek_callback = { context, offset, origin in
        // curl only ever seeks from the start (0 is SEEK_SET).
        guard let transfer = from(context), origin == 0, (0...transfer.request.body.length).contains(Int64(offset))
        else { return CInt(CURL_SEEKFUNC_FAIL) }
        // curl repeats a request when a kept connection dies without an answer. The first one's effect is unknown, and
        // only the caller can say whether a second may follow.
        if transfer.position > 0, !transfer.request.isRepeatable { return CInt(CURL_SEEKFUNC_FAIL) }
        transfer.position = Int64(offset)
        return CInt(CURL_SEEKFUNC_OK)
    }

    func refuseAnswer(_ why: String, _ code: ErrorCode = .answerTooLarge) {
        failure = TransferError(
            code, "\(request.label): the answer was refused, \(why); check that the URL is the service's",
            isOutage: false)
    }
}

/// The body of a request, on its way into libcurl's buffer.
extension Transfer {
    /// Writes the next bytes into `room`, as far as the lane grants them to this request.
    ///
    /// - Returns: curl's answer: the number of bytes, 0 at the end of the body. It is a pause where it is not this
    ///   request's turn, until the loop continues it, and an abort with the failure kept.
    private func givePiece(_ room: UnsafeMutableRawBufferPointer, now: Instant) -> Int {
        let left = request.body.length - position
        guard let place, left > 0 else { return giveBody(room) ?? Int(CURL_READFUNC_ABORT) }
        let allowance = place.allowance(of: left, at: now)
        guard allowance > 0 else {
            isPaused = true
            deadlines.held(at: now)
            return Int(CURL_READFUNC_PAUSE)
        }
        // curl may call before the loop continues it: when it sends the body again.
        isPaused = false
        deadlines.released(at: now)
        let count = giveBody(UnsafeMutableRawBufferPointer(rebasing: room.prefix(Int(clamping: allowance))))
        place.use(Int64(count ?? 0))
        return count ?? Int(CURL_READFUNC_ABORT)
    }

    /// The whole body of a small request, if the lane has bytes for all of it.
    static func inlineBody(_ request: HTTPRequest, _ place: ThrottledRequest?, _ now: Instant) -> [UInt8]? {
        guard let body = request.inlineBody, let place else { return request.inlineBody }
        let length = Int64(body.count)
        guard place.allowance(of: length, at: now) >= length else { return nil }
        place.use(length)
        return body
    }

    /// Writes the next bytes into `room` and returns their number, 0 at the end; nil after a failure, which is kept.
    private func giveBody(_ room: UnsafeMutableRawBufferPointer) -> Int? {
        guard position < request.body.length else { return 0 }
        switch request.body {
        case .none: return 0
        case .bytes(let bytes): return give(bytes, from: 0, room)
        case .slice(let source, let offset, let length): return give(source, offset, length, from: 0, room)
        case .form(let header, let source, let offset, let length, let footer):
            let fileStart = Int64(header.count)
            if position < fileStart { return give(header, from: 0, room) }
            if position < fileStart + length { return give(source, offset, length, from: fileStart, room) }
            return give(footer, from: fileStart + length, room)
        }
    }

    /// The bytes of a piece that begins at `start` of the body.
    private func give(_ bytes: [UInt8], from start: Int64, _ room: UnsafeMutableRawBufferPointer) -> Int {
        let rest = bytes[Int(position - start)...].prefix(room.count)
        room.copyBytes(from: rest)
        position += Int64(rest.count)
        return rest.count
    }

    /// Bytes of the file's `length` bytes from `offset`, which begin at `start` of the body.
    private func give(
        _ source: SourceFile, _ offset: Int64, _ length: Int64, from start: Int64,
        _ room: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let place = position - start
        let target = UnsafeMutableRawBufferPointer(rebasing: room[..<Int(min(Int64(room.count), length - place))])
        do throws(SystemError) {
            let count = try source.read(into: target, at: offset + place)
            guard count > 0 else {
                return fail(source, "ended at byte \(offset + place) during the transfer: it was truncated")
            }
            position += Int64(count)
            if place + Int64(count) < length { return count }
            // The last bytes of a file that was written to are held back: the bytes already sent may be a mixture.
            guard try source.identity().isUntouched(since: source.opened) else {
                return fail(source, "changed during the transfer")
            }
            return count
        } catch {
            failure = TransferError(.sourceUnreadable, "\(request.label): \(error)", isOutage: false)
            return nil
        }
    }

    private func fail(_ source: SourceFile, _ why: String) -> Int? {
        failure = TransferError(
            .sourceChanged, "\(request.label): \(source.path.display) \(why)", isOutage: false)
        return nil
    }
}

/// Keeps requests for a server's URLs to addresses that such a server may name (`HTTPURL.reach`), whatever the URL's
/// host resolves to, and however often that changes (DNS rebinding).
extension Transfer {
    /// Called for each address before connecting, and for each connection's address before the request is sent. A
    /// connection left by an earlier request may belong to a destination with other rights to the same host.
    ///
    /// A proxy resolves the name itself, and stands where a person wants it: behind one, only the URL's text can be
    /// judged.
    func setAddressGuard() {
        guard request.url.reach != nil, submission.proxy == nil, request.unixSocket == nil else { return }
        let context = Unmanaged.passUnretained(self).toOpaque()
        easy.note(inlet_curl_set_address_guard(easy.handle, context, Self.openSocket, Self.useConnection))
    }

    private static let openSocket: curl_opensocket_callback = { context, _, address in
        guard let transfer = from(context), let address else { return inlet_no_socket() }
        guard transfer.mayConnect(to: inlet_curl_socket_address(address)) else { return inlet_no_socket() }
        return inlet_curl_open_socket(address)
    }

    private static let useConnection: curl_prereq_callback = { context, address, _, _, _ in
        guard let transfer = from(context), let address else { return CInt(CURL_PREREQFUNC_ABORT) }
        return transfer.mayUse(String(cString: address)) ? CInt(CURL_PREREQFUNC_OK) : CInt(CURL_PREREQFUNC_ABORT)
    }

    private func mayConnect(to address: UnsafeRawPointer) -> Bool {
        guard let scope = HostScope(socketAddress: address), request.url.reach?.contains(scope) == false else {
            hasSocket = true
            return true
        }
        var text = [CChar](repeating: 0, count: 64)
        inlet_socket_address_text(address, &text, 64)
        refused = (String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self), scope)
        return false
    }

    private func mayUse(_ address: String) -> Bool {
        let scope = HostScope(address)
        if request.url.reach?.contains(scope) ?? true { return true }
        failure = refusal(of: address, scope)
        return false
    }

    /// The error when no address was allowed. Not an outage, which would hold up the destination because of one URL.
    var addressRefusal: TransferError? { hasSocket ? nil : refused.map { refusal(of: $0.address, $0.scope) } }

    private func refusal(of address: String, _ scope: HostScope) -> TransferError {
        TransferError(
            .forbiddenURL,
            "\(request.label) was not sent: \(request.url.host) leads to \(address), a \(scope.label), and the "
                + "server that sent this URL is not that close itself", isOutage: false)
    }

    /// Records the address that the host answered from, for the URLs that it will send.
    func noteHost() {
        guard submission.proxy == nil, request.unixSocket == nil, !request.readsCertificate, answer.hasFields,
            let address = easy.newAddress
        else { return }
        HostScopeCache.shared.note(request.url.host, HostScope(address), isProven: request.url.scheme == "https")
    }
}

/// The memory through which bodies pass into sockets: one buffer each, for all threads and clients together.
///
/// The first bodies get buffers large enough to make system calls cheap. The more bodies there are, the less a larger
/// buffer helps, because none has the line to itself. So the sum stays below 6 MiB plus 64 KiB for each body.
final class UploadBuffers: Sendable {
    static let shared = UploadBuffers()

    /// libcurl accepts no less than the minimum, and no more than 2 MiB.
    private static let sizes = 16 << 10...512 << 10
    private static let room = 6 << 20
    /// A quarter of the rest, but for a large body no less than this.
    private static let fair = 64 << 10
    /// Bodies up to `small` use buffers below the size that the heap maps separately (`ProcessMemory.boundHeap`): a few
    /// more system calls cost less than faults of fresh pages.
    private static let small: Int64 = 1 << 20
    private static let kept = 60 << 10

    private let taken = Mutex(0)

    /// The size of the buffer for a body of `length` bytes; release it afterwards.
    func take(for length: Int64) -> Int {
        taken.withLock { taken in
            let size = Self.size(for: length, taken: taken)
            taken += size
            return size
        }
    }

    func giveBack(_ size: Int) { if size > 0 { taken.withLock { $0 -= size } } }

    static func size(for length: Int64, taken: Int) -> Int {
        let most = length > small ? min(max((room - taken) / 4, fair), sizes.upperBound) : kept
        return min(max(Int(clamping: length), sizes.lowerBound), most)
    }
}
