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
            let refusal: SourceRule.Refusal?
            do {
                source = try SourceFile(opening: file.place)
                refusal = try source.look().refusal(by: rule)
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
            return .success(try await pipeline.deliver(source, order, attempt))
        } catch {
            return .failure(error)
        }
    }
}
