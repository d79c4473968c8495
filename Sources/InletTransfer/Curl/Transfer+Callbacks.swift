import CCurl
import InletCore
import InletLinux

/// What libcurl calls while a transfer runs, on the loop's thread. The context is the unretained `Transfer`, which its
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
        transfer.deadlines.answerMoved(at: .now)
        return transfer.take(UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
    }

    private static let takeHeader: curl_write_callback = { bytes, _, count, context in
        guard let transfer = from(context), let bytes else { return 0 }
        let hadFields = transfer.answer.hasFields
        if let refusal = transfer.answer.take(line: UnsafeRawBufferPointer(start: bytes, count: count)) {
            transfer.refuseAnswer(refusal)
            return 0
        }
        if transfer.answer.hasFields, !hadFields, !transfer.offerToSink() { return 0 }
        // curl stops sending then, or what it still sends has been refused already.
        if transfer.answer.status >= 300 { transfer.deadlines.bodyEnded(at: .now) }
        transfer.deadlines.answerMoved(at: .now)
        return count
    }

    private static let takeProgress: curl_xferinfo_callback = { context, expected, received, _, sent in
        from(context)?.progress(
            sent: Int64(sent), received: Int64(received), of: expected > 0 ? Int64(expected) : nil, now: .now)
        return 0
    }

    private static let giveBody: curl_read_callback = { buffer, size, count, context in
        guard let transfer = from(context), let buffer else { return Int(CURL_READFUNC_ABORT) }
        let room = UnsafeMutableRawBufferPointer(start: buffer, count: size * count)
        return switch transfer.givePiece(room, now: .now) {
        case .bytes(let count): count
        case .later: Int(CURL_READFUNC_PAUSE)
        case .failed: Int(CURL_READFUNC_ABORT)
        }
    }

    private static let rewind: curl_seek_callback = { context, offset, origin in
        // curl only ever seeks from the start (0 is SEEK_SET).
        guard let transfer = from(context), origin == 0, (0...transfer.request.body.length).contains(Int64(offset))
        else { return CInt(CURL_SEEKFUNC_FAIL) }
        // curl sends a request anew by itself when a kept connection dies without an answer. What has been done by then is
        // unknown: only the caller can say whether it may be done twice.
        if transfer.position > 0, !transfer.request.isRepeatable { return CInt(CURL_SEEKFUNC_FAIL) }
        transfer.position = Int64(offset)
        return CInt(CURL_SEEKFUNC_OK)
    }

    func refuseAnswer(_ refusal: AnswerBuffer.Refusal) {
        switch refusal {
        case .headerTooLarge:
            refuseAnswer(
                "its header has more than \(AnswerBuffer.fieldLimit) fields or \(AnswerBuffer.headerLimit) bytes")
        case .coded(let coding):
            let shown = DisplayText.escape(String(coding.prefix(100)))
            refuseAnswer(
                "its body comes in another coding than was asked for (Transfer-Encoding: \(shown))", .badAnswer)
        case .switchesProtocol: refuseAnswer("it changes to another protocol, unasked (status 101)", .badAnswer)
        }
    }

    func refuseAnswer(_ why: String, _ code: ErrorCode = .answerTooLarge) {
        failure = TransferError(
            code, "\(request.label): the answer was refused, \(why); check that the URL is the service's",
            isOutage: false)
    }
}
