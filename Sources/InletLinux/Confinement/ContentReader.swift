import Glibc
import InletCore
import Synchronization
import SystemPackage

/// Asks libmagic which type a content is, in a process that has given up everything but answering (`reader.c`): the
/// library is C, and reads what strangers wrote.
package enum ContentReader {
    package enum Answer: Sendable, Equatable {
        case type(String)
        /// libmagic is missing, or has no database.
        case unavailable(String)
    }

    /// One reader serves the whole process, one question at a time. It ends when nobody has asked for a while.
    private static let reader = Mutex<Descriptor?>(nil)

    /// The call by which remedies are chosen.
    static let call = "libmagic"

    /// The type of content that begins with `head`. Blocks.
    ///
    /// - Throws: where no reader can be started, and where libmagic fails on this content (`EBADMSG`).
    package static func type(of head: [UInt8]) throws(SystemError) -> Answer {
        try reader.withLock { reader throws(SystemError) in
            // One that served others may have ended for its idleness; a new one that ends was ended by this content.
            if reader != nil, let answer = ask(&reader, head) { return answer }
            let (ours, theirs) = try HostProgram.conversation()
            reader = Descriptor(owning: ours)
            let other = Descriptor(owning: theirs)
            try ProcessHost.shared().startReader(other.number)
            close(other.release())
            guard let answer = ask(&reader, head) else { throw SystemError(call: call, code: .badMessage) }
            return answer
        }
    }

    /// nil where the reader has ended; it is forgotten then.
    private static func ask(_ reader: inout Descriptor?, _ head: [UInt8]) -> Answer? {
        guard let conversation = reader.take() else { return nil }
        var question = HostMessage()
        question.add(head)
        do throws(SystemError) {
            try question.send(to: conversation.number)
        } catch {
            // It has ended: the caller starts another one.
            return nil
        }
        guard let message = HostMessage.receive(from: conversation.number), let answer = HostResponse.parse(message)
        else { return nil }
        switch answer.answer {
        case .type(let type):
            reader = consume conversation
            return .type(type)
        // It ends then: somebody may install the library before the next question.
        case .unavailable(let reason): return .unavailable(reason)
        default: return nil
        }
    }
}
