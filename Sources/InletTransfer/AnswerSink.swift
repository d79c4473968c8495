/// Takes the body of an answer while it comes, instead of it being kept in memory.
///
/// All calls come from the thread of the transfer, one after the other: each must return within milliseconds, and may write
/// to a file but not sync it, nor hash it where the client has other transfers to serve. What is thrown ends the request
/// with that error.
package protocol AnswerSink: Sendable {
    /// The head of the final answer. false leaves the body, within `answerLimit`, to the response: that of an error.
    func begins(_ head: HTTPResponse) throws(TransferError) -> Bool

    /// The next bytes of the body, valid within the call.
    func take(_ piece: UnsafeRawBufferPointer) throws(TransferError)
}
