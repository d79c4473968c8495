internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines

extension DeliverOne {
    /// Opens the source, once, and has it delivered.
    ///
    /// - Parameter rule: the one of its folder, which is asked of what was opened.
    static func open(
        _ file: FileRow, _ rule: SourceRule, _ pipeline: any Pipeline, _ order: DeliveryOrder, _ attempt: Attempt
    ) async -> Result<DeliveryOutcome, DeliveryError> {
        do throws(DeliveryError) {
            let source: SourceFile
            let (refusal, isMadeUp): (SourceRule.Refusal?, Bool)
            do {
                source = try SourceFile(opening: file.place)
                (refusal, isMadeUp) = (try source.look().refusal(by: rule), try source.exceedsItsSize())
            } catch {
                // What has been sent whole needs no source, wherever that is.
                if error.isMissing, let ended = try await pipeline.conclude(file.fullPath, order, attempt) {
                    return .success(ended)
                }
                throw Self.unopened(error)
            }
            // From here on another owner, or name, is another change time, which pipelines notice.
            if refusal != nil {
                throw DeliveryError(
                    .sourceChanged, .sourceChanged,
                    "\(source.path.display): got another owner, or another name, since it was admitted, and is left alone"
                )
            }
            if isMadeUp {
                throw DeliveryError(
                    .sourceChanged, .sourceChanged,
                    "\(source.path.display): reading it gives more than its size says, and it is left alone")
            }
            return .success(try await pipeline.deliver(source, order, attempt))
        } catch {
            return .failure(error)
        }
    }
}
