"""What Python does behind a line, by the methods of classes, is written out where Dynamo does not do it."""
