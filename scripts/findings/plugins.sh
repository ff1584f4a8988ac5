# verify-plugins: a plugin that writes to what is not its output is found in the batch and named, by --verify-plugins
verify-plugins() { gotest ./host 'TestVerifyPlugins$'; }

# undeclared-lengths: lengths that a stage changes without declaring them never reach the next stage
undeclared-lengths() { gotest ./host 'TestUndeclaredLengths$'; }
